#ifndef HAWSER_STORE_CHANGE_SLOTS_H_
#define HAWSER_STORE_CHANGE_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::store::internal {

// Assigns ids to the changes of one client, so that a server which keeps the
// last change of each slot recognises a retry. Uses as many slots as changes
// were ever in flight at once. Thread-safe; must outlive its changes.
//
// Not a net::RecentKeys: it is the client's side, which remembers no changes
// but numbers them so that the server has to remember only one for each slot.
class ChangeSlots {
 public:
  // One change; its destruction frees the slot.
  class Change {
   public:
    explicit Change(ChangeSlots* slots);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    size_t slot() const { return slot_; }
    // Sequence number of the change within its slot, from 1.
    uint64_t sequence() const { return sequence_; }

   private:
    ChangeSlots* const slots_;
    size_t slot_ = 0;
    uint64_t sequence_ = 0;
  };

 private:
  async::Mutex mutex_;
  std::vector<size_t> free_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> last_sequence_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_CHANGE_SLOTS_H_
