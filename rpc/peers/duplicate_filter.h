// Filter of duplicate requests, per sender.

#ifndef HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_
#define HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "net/recent_keys.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Detects duplicate requests by their sender and its request number. Remembers
// the last kWindow numbers of each sender. Older numbers count as seen, because
// running a request twice is worse than losing one that was overtaken by so
// many.
//
// A member is told by its incarnation, which the store has confirmed. Other
// senders, whose rank is not valid, may claim any incarnation. They are told by
// their name as well, which a certificate can prove, and so take nothing from
// members. Above kMaxMembers and kMaxOthers, it evicts the one that has been
// silent longest, so that others use at most 16 MiB. Thread-safe.
//
// Senders are in a net::RecentKeys. Their numbers are not: they are dense, so a
// bit for each in a window takes less memory than a key, and a number that has
// left the window still counts as seen.
class DuplicateFilter {
 public:
  static constexpr uint64_t kWindow = 65536;
  static constexpr size_t kMaxMembers = 16384;
  static constexpr size_t kMaxOthers = 2048;

  // Returns true the first time. `number` counts from 1.
  bool FirstSeen(const WorkerInfo& sender, uint64_t number);

  // Drops a member that has departed.
  void Forget(Incarnation member);

  // Number of senders remembered.
  size_t num_senders() const;

 private:
  struct Window {
    uint64_t highest = 0;
    // Bit n % kWindow represents n, for the last kWindow numbers.
    std::bitset<kWindow> seen;
  };

  using NameAndIncarnation = std::pair<std::string, Incarnation>;

  // The window of `key`, which is new if it is not there.
  template <class Key>
  static Window& WindowOf(
      net::RecentKeys<Key, std::unique_ptr<Window>>& windows, const Key& key);

  mutable async::Mutex mutex_;
  // The newest is the one that was active last.
  net::RecentKeys<Incarnation, std::unique_ptr<Window>> members_
      ABSL_GUARDED_BY(mutex_){kMaxMembers};
  net::RecentKeys<NameAndIncarnation, std::unique_ptr<Window>> others_
      ABSL_GUARDED_BY(mutex_){kMaxOthers};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_
