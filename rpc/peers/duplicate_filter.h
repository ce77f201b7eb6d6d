// Filter of duplicate requests, per sender.

#ifndef HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_
#define HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "net/recent_keys.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Detects duplicate requests by the sender's incarnation and its request
// number. Remembers the last kWindow numbers of each sender. Older numbers
// count as seen, because running a request twice is worse than losing one that
// was overtaken by so many. Above kMaxSenders senders, it evicts the one that
// has been silent longest, so that forged senders use at most 128 MiB.
// Thread-safe.
//
// Senders are in a net::RecentKeys. Their numbers are not: they are dense, so a
// bit for each in a window takes less memory than a key, and a number that has
// left the window still counts as seen.
class DuplicateFilter {
 public:
  static constexpr uint64_t kWindow = 65536;
  static constexpr size_t kMaxSenders = 16384;

  // Returns true the first time. `number` counts from 1.
  bool FirstSeen(Incarnation sender, uint64_t number);

  // Drops a sender that has departed.
  void Forget(Incarnation sender);

  // Number of senders remembered.
  size_t num_senders() const;

 private:
  struct Window {
    uint64_t highest = 0;
    // Bit n % kWindow represents n, for the last kWindow numbers.
    std::bitset<kWindow> seen;
  };

  mutable async::Mutex mutex_;
  // By sender; the newest is the one that was active last.
  net::RecentKeys<Incarnation, std::unique_ptr<Window>> windows_
      ABSL_GUARDED_BY(mutex_){kMaxSenders};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_
