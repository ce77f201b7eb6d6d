// Notices that a group has failed or that a rank leaves it.

#ifndef HAWSER_COLLECTIVES_GROUP_WATCH_H_
#define HAWSER_COLLECTIVES_GROUP_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "collectives/backend.h"

namespace hawser::collectives {

// A receive waits for each other rank, so that the backend looks whether the
// rank is alive, and ends the receive with the error of the group. Ranks ask
// each other how many operations they have begun, to find the one that the
// others wait for, and each two exchange a last message when the first of them
// leaves.
//
// Thread-safe.
class GroupWatch {
 public:
  // The tag of the messages.
  static constexpr uint32_t kTag = 0xffffffff;

  // Run in threads of the backend, with no lock held.
  struct Events {
    // The group has failed. May run several times.
    std::function<void(const absl::Status&)> on_failure;
    // The rank has left, after it has taken part in `num_begun` operations. It
    // may have ended some that others have not begun.
    std::function<void(int rank, int64_t num_begun)> on_left;
    // How many operations this rank has begun.
    std::function<int64_t()> num_begun;
  };

  // `control` must outlive this.
  GroupWatch(Backend& control, int rank, int size, Events events);
  // Tells the other ranks that this one leaves, and waits up to a second for
  // their replies. Afterwards no event runs.
  ~GroupWatch();
  GroupWatch(const GroupWatch&) = delete;
  GroupWatch& operator=(const GroupWatch&) = delete;

  // The error of an operation that is late with `status`, by the number of
  // operations that this rank has begun. Asks the others, and names those that
  // have begun less, have left, or do not reply within a second. If the group
  // has failed meanwhile, its error. For one thread at a time.
  absl::Status ExplainTimeout(int64_t num_begun, const absl::Status& status);

 private:
  // Callbacks of futures use it, which may outlive the object.
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GROUP_WATCH_H_
