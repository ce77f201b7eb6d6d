// Groups of processes of one machine.

#ifndef HAWSER_COLLECTIVES_HOST_BACKEND_H_
#define HAWSER_COLLECTIVES_HOST_BACKEND_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/backend.h"
#include "store/store.h"

namespace hawser::collectives {

struct HostOptions {
  // The numbers that errors use for the ranks. Empty: those of the group.
  std::vector<int> numbers = {};
  // Called with the numbers of the ranks that this one has waited for until the
  // deadline; returns the error. Null: one that names them.
  std::function<absl::Status(const std::vector<int>& late)> late_error =
      nullptr;
};

// The machine, pid namespace and user of this process, of less than 255 bytes:
// processes that differ in one of them cannot form a group.
std::string NameOfHost();

// Connects rank `rank` of a group of `size` processes of one machine and user,
// which all call this with a store of the same keys that no other group uses.
// A line in the log names those that have not come after two seconds. Returns
// once all have mapped the shared memory, which is freed when they have
// ended: nothing is left behind.
//
//   kDeadlineExceeded    not all ranks have come within `timeout`; names those
//                        that are missing, if the store can still tell.
//   kFailedPrecondition  a rank runs on another machine, in another pid
//                        namespace or as another user, or cannot map the
//                        memory; names it. The same on all ranks.
// Other errors are those of the store, and kResourceExhausted: out of memory or
// descriptors.
absl::StatusOr<std::unique_ptr<Backend>> MakeHostBackend(
    store::Store& store, int rank, int size, absl::Duration timeout,
    const HostOptions& options = {});

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_BACKEND_H_
