// Makes process groups.

#ifndef HAWSER_COLLECTIVES_MAKE_GROUP_H_
#define HAWSER_COLLECTIVES_MAKE_GROUP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/gloo/backend.h"
#include "collectives/nccl/library.h"
#include "collectives/process_group.h"
#include "store/store.h"

namespace hawser::collectives {

struct NcclOptions {
  // The GPU of this rank, whose tensors the group takes. Ranks of one machine
  // have different ones.
  int device = 0;
  NcclConfig config = {};
};

struct MakeGroupOptions {
  // This process, and the number of processes.
  int rank = 0;
  int size = 1;
  // "host": processes of one machine, over shared memory. "gloo": processes of
  // several machines, over TCP. "loopback": a group of one. Empty: loopback for
  // a group of one, host if all ranks are on one machine, or else gloo.
  // "nccl": tensors of one GPU in each rank over NCCL, and tensors of the CPU
  // over the group that an empty name means. "mpi": processes of one MPI job;
  // GetMpiProcess (collectives/mpi/backend.h) knows rank and size.
  std::string backend = {};
  // Where the other ranks reach this one, for gloo.
  GlooOptions gloo = {};
  NcclOptions nccl = {};
  // Time for all ranks to come.
  absl::Duration start_timeout = absl::Minutes(5);
  // The name is part of the keys in the store: each group of a job has a name
  // of its own, also one that replaces another.
  ProcessGroupOptions group = {};
};

// Returns once all ranks have called it with the same name, size and backend.
// The store is not used afterwards.
//
//   kInvalidArgument  the rank is not below the size, or the backend is not
//                     known.
//   kUnimplemented    the program was built without the backend.
// Other errors are those of the backend: collectives/host/backend.h,
// collectives/gloo/backend.h, collectives/mpi/backend.h,
// collectives/nccl/backend.h and collectives/nccl/system_library.h.
absl::StatusOr<std::unique_ptr<ProcessGroup>> MakeProcessGroup(
    store::Store& store, const MakeGroupOptions& options);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_MAKE_GROUP_H_
