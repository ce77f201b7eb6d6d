// Groups of the processes of an MPI job.

#ifndef HAWSER_COLLECTIVES_MPI_BACKEND_H_
#define HAWSER_COLLECTIVES_MPI_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/backend.h"
#include "store/store.h"

namespace hawser::collectives {

// A process of the job that mpirun has started.
struct MpiProcess {
  // In MPI_COMM_WORLD.
  int rank = 0;
  int size = 1;
};

// Begins MPI, if nobody has, and returns what it says of this process: a
// program makes its first group of it.
//
//   kUnimplemented       the program was built without MPI.
//   kFailedPrecondition  the program has begun MPI without threads, or has
//                        ended it.
//   kInternal            MPI cannot begin.
absl::StatusOr<MpiProcess> GetMpiProcess();

// Connects rank `rank` of a group of `size` processes of one MPI job, all or
// some of them, in any order. Each calls it once, with the same keys: `store`
// is used by this group alone, as a PrefixStore, and only during the call. The
// processes make groups that share some of them one after the other.
//
// Threads. One thread of the process makes all calls of MPI, for all groups,
// and ends MPI when the process exits; the program does not call MPI meanwhile.
// While groups exist, it looks for events 2000 times a second, and all the time
// for 0.5 ms after each.
//
// Data is copied to memory of the backend and back in segments, because MPI
// cannot end an operation whose memory the caller takes back after an error.
// Reductions use the arithmetic of the other backends. MPI chooses the order of
// the operands, and rounds sums of f16 and bf16 after each.
//
// Failures. A timeout, Abort and a rank that leaves end the operations of all
// ranks, as with other backends. MPI does not survive the death of a process:
// mpirun then kills all others. MPI's own errors are returned
// (MPI_ERRORS_RETURN): kInternal.
//
// Errors:
//   kInvalidArgument   rank and size do not fit, or two ranks are one process.
//   kDeadlineExceeded  names the ranks that have not joined within `timeout`.
// and those of GetMpiProcess and of the store.
absl::StatusOr<std::unique_ptr<Backend>> MakeMpiBackend(store::Store& store,
                                                        int rank, int size,
                                                        absl::Duration timeout);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_MPI_BACKEND_H_
