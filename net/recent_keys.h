// Bounded memory of keys that were seen recently.

#ifndef HAWSER_NET_RECENT_KEYS_H_
#define HAWSER_NET_RECENT_KEYS_H_

#include <cstddef>
#include <iterator>
#include <limits>
#include <list>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"

namespace hawser::net {

// Remembers keys, each with a value, and evicts the oldest ones beyond
// `max_keys` keys or `max_bytes` bytes, so that keys which peers make up use
// bounded memory. Detects repeated changes, late messages for what has ended,
// and senders seen before. Operations take constant time per key added or
// evicted.
//
// `Key` has an Abseil hash. Not thread-safe.
template <class Key, class Value = std::monostate>
class RecentKeys {
 public:
  explicit RecentKeys(size_t max_keys,
                      size_t max_bytes = std::numeric_limits<size_t>::max())
      : max_keys_(max_keys), max_bytes_(max_bytes) {}
  RecentKeys(const RecentKeys&) = delete;
  RecentKeys& operator=(const RecentKeys&) = delete;

  // Adds `key` as the newest, accounting for `bytes` bytes, and evicts the
  // oldest keys beyond the limits, which may include this one. Returns false,
  // and changes nothing, if `key` is known: it keeps its age.
  bool Add(const Key& key, Value value = {}, size_t bytes = 0) {
    if (index_.contains(key)) return false;
    entries_.push_front({key, std::move(value), bytes});
    index_.insert(entries_.begin());
    bytes_ += bytes;
    while (entries_.size() > max_keys_ || bytes_ > max_bytes_) {
      EraseEntry(std::prev(entries_.end()));
    }
    return true;
  }

  bool Contains(const Key& key) const { return index_.contains(key); }

  // Returns the value of `key`, valid until the key is evicted or erased; null
  // if it is unknown.
  const Value* Find(const Key& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &(*found)->value;
  }
  Value* Find(const Key& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &(*found)->value;
  }

  // Same, and makes `key` the newest.
  Value* Touch(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, *found);
    return &(*found)->value;
  }

  void Erase(const Key& key) {
    const auto found = index_.find(key);
    if (found != index_.end()) EraseEntry(*found);
  }

  size_t size() const { return entries_.size(); }

  // Calls visit(key, value) for each key, the newest first. `visit` must not
  // change the set.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (const Entry& entry : entries_) visit(entry.key, entry.value);
  }

 private:
  struct Entry {
    Key key;
    [[no_unique_address]] Value value;
    size_t bytes;
  };
  using Entries = std::list<Entry>;
  using Iterator = typename Entries::iterator;

  static const Key& KeyOf(const Key& key) { return key; }
  static const Key& KeyOf(Iterator entry) { return entry->key; }

  struct Hash {
    using is_transparent = void;
    template <class K>
    size_t operator()(const K& key) const {
      return absl::Hash<Key>{}(KeyOf(key));
    }
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return KeyOf(a) == KeyOf(b);
    }
  };

  void EraseEntry(Iterator entry) {
    bytes_ -= entry->bytes;
    index_.erase(entry);
    entries_.erase(entry);
  }

  const size_t max_keys_;
  const size_t max_bytes_;
  // Newest first.
  Entries entries_;
  absl::flat_hash_set<Iterator, Hash, Equal> index_;
  size_t bytes_ = 0;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_RECENT_KEYS_H_
