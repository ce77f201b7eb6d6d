// Per-peer quota of a server's calls and their bytes.

#ifndef HAWSER_NET_SERVER_SHARED_QUOTA_H_
#define HAWSER_NET_SERVER_SHARED_QUOTA_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "async/mutex.h"

namespace hawser::net {

// Counts calls and their bytes, in total and per peer. Thread-safe. Peers
// without calls use no memory.
class SharedQuota : public std::enable_shared_from_this<SharedQuota> {
 public:
  struct Limits {
    int max_calls;
    int max_calls_per_peer;
    size_t max_bytes = std::numeric_limits<size_t>::max();
    size_t max_bytes_per_peer;
  };
  // The limit that a call would exceed.
  enum class Exceeded { kCalls, kCallsPerPeer, kBytes, kBytesPerPeer };

  // Accounts for one call until destroyed. May outlive the owner of the quota.
  class [[nodiscard]] Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation() { Drop(); }

    // Releases the bytes while the call continues.
    void ReleaseBytes();

   private:
    friend class SharedQuota;
    void Drop();

    std::shared_ptr<SharedQuota> quota_;
    std::string peer_;
    size_t bytes_ = 0;
  };

  static std::shared_ptr<SharedQuota> Create(const Limits& limits);

  // Returns a reservation for a further call of `peer` with `bytes` bytes, or
  // the first limit, in the order of Exceeded, that it would exceed.
  std::variant<Reservation, Exceeded> Admit(const std::string& peer,
                                            size_t bytes);

 private:
  struct Usage {
    int num_calls = 0;
    size_t bytes = 0;
  };

  explicit SharedQuota(const Limits& limits) : limits_(limits) {}

  void Release(const std::string& peer, int num_calls, size_t bytes);

  const Limits limits_;

  async::Mutex mutex_;
  Usage all_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Usage> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_SHARED_QUOTA_H_
