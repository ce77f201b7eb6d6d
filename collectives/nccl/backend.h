// Groups of GPUs, over NCCL.

#ifndef HAWSER_COLLECTIVES_NCCL_BACKEND_H_
#define HAWSER_COLLECTIVES_NCCL_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/backend.h"
#include "collectives/nccl/library.h"
#include "store/store.h"

namespace hawser::collectives {

// Connects rank `rank` of `size` over NCCL; each rank calls it once, with the
// same keys: `store` is used by this group alone, as a PrefixStore, and only
// during the call. Rank 0 makes the id of the communicator and sets the key
// "id", and all connect.
//
//   library  NCCL of the rank's device, whose tensors the group takes, or why
//            there is none, for the other ranks.
//   control  The same group on memory of the CPU, for this backend alone. It
//            serves tensors of the CPU (ForDevice) and barriers, and finds dead
//            ranks and spreads errors, as NCCL cannot name a rank: when it
//            fails, the operations of NCCL end with its error.
//
// Threads. One thread owns each communicator and makes all its calls. An
// operation waits on the device for the work that was enqueued before
// (StartAfter), runs on the stream of the communicator, which does not wait for
// later work, and returns when the device has finished it. Later work of any
// stream thus sees its results. The operations of a group run one after the
// other.
//
// One call of NCCL serves lists of tensors that lie behind each other in
// memory. Other lists, the pieces of an all-reduce, and gather, scatter and
// all-to-all, are several calls in an NCCL group, and run as one.
//
// A message is announced over `control`, and its data goes over a communicator
// of the two ranks, which the first message of a direction makes, with a thread
// of its own in each. Send completes once the receiver has the data.
//
// Reductions are NCCL's: the order of the operands depends on the sizes and the
// connections, though all ranks get the same result; averages of f16 and bf16
// may be rounded more than once; min and max may drop a NaN. kUnimplemented:
// bitwise operations.
//
// Errors of operations are those of Backend; they come within the deadline,
// unless `config.blocking`. Errors of this call, on all ranks, which name the
// rank at fault:
//   kInvalidArgument     the options do not fit the GPU, or another rank of the
//                        machine uses it.
//   kDeadlineExceeded    not connected within `timeout`.
//   kUnavailable         a rank has died, or the network has failed.
//   kAborted             another rank cannot connect; gives its reason.
// and those of the library and the store.
absl::StatusOr<std::unique_ptr<Backend>> MakeNcclBackend(
    store::Store& store, int rank, int size, absl::Duration timeout,
    absl::StatusOr<std::unique_ptr<NcclLibrary>> library,
    std::unique_ptr<Backend> control, const NcclConfig& config = {});

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_BACKEND_H_
