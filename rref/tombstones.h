#ifndef HAWSER_RREF_TOMBSTONES_H_
#define HAWSER_RREF_TOMBSTONES_H_

#include <cstddef>
#include <deque>

#include "absl/container/flat_hash_set.h"

namespace hawser::rref {

// The last `capacity` ids of things that have ended, so that a late message
// does not bring them back. Not thread-safe.
template <class Id>
class Tombstones {
 public:
  explicit Tombstones(size_t capacity) : capacity_(capacity) {}

  void Add(const Id& id) {
    if (!ids_.insert(id).second) return;
    order_.push_back(id);
    if (order_.size() > capacity_) {
      ids_.erase(order_.front());
      order_.pop_front();
    }
  }

  bool Contains(const Id& id) const { return ids_.contains(id); }

 private:
  const size_t capacity_;
  absl::flat_hash_set<Id> ids_;
  std::deque<Id> order_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_TOMBSTONES_H_
