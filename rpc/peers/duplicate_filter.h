// Filter of repeated requests, by sender.

#ifndef HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_
#define HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "async/mutex.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Recognises repeated requests by the sender's incarnation and its count of
// requests. Remembers the last kWindow numbers of each sender; older ones count
// as seen, because accepting one twice is worse than losing one that was
// overtaken by so many. Of more than kMaxSenders it forgets the one that has
// been silent for longest: whoever invents senders gets no more memory than
// 128 MiB. Thread-safe.
class DuplicateFilter {
 public:
  static constexpr uint64_t kWindow = 65536;
  static constexpr size_t kMaxSenders = 16384;

  // True the first time. `number` counts from 1.
  bool FirstSeen(Incarnation sender, uint64_t number);

  // The sender is gone for good.
  void Forget(Incarnation sender);

  // Senders that are remembered.
  size_t num_senders() const;

 private:
  struct Window {
    uint64_t highest = 0;
    std::list<Incarnation>::iterator place;
    // Bit n % kWindow stands for n, for the last kWindow numbers.
    std::bitset<kWindow> seen;
  };

  mutable async::Mutex mutex_;
  absl::flat_hash_map<Incarnation, std::unique_ptr<Window>> windows_
      ABSL_GUARDED_BY(mutex_);
  // The one heard of last is first.
  std::list<Incarnation> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_DUPLICATE_FILTER_H_
