// How much of a worker each peer may take up.

#ifndef HAWSER_RPC_CALL_QUOTA_H_
#define HAWSER_RPC_CALL_QUOTA_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"

namespace hawser::rpc {

// Of calls that a worker serves at once. Calls of functions and those of
// services, such as references, are counted apart.
struct CallLimits {
  // From all peers, and from one.
  int max_calls = 65536;
  int max_calls_per_peer = 16384;
  // Of the requests of one peer, until their arguments have been read.
  size_t max_request_bytes_per_peer = size_t{4} << 30;
};

// kInvalidArgument naming the limit that is not positive.
absl::Status Validate(const CallLimits& limits);

// Counts calls by peer. Thread-safe. Costs nothing for peers without calls.
class CallQuota : public std::enable_shared_from_this<CallQuota> {
 public:
  // One call that is being served, until it is dropped.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Drop(); }

    // The request is gone, though the call goes on.
    void ReleaseBytes();

   private:
    friend class CallQuota;
    void Drop();

    std::shared_ptr<CallQuota> quota_;
    std::string peer_;
    size_t bytes_ = 0;
  };

  static std::shared_ptr<CallQuota> Create(const CallLimits& limits);

  // kResourceExhausted, naming the peer and the limit that a further call with
  // a request of so many bytes exceeds.
  absl::StatusOr<Ticket> Admit(const std::string& peer, size_t request_bytes);

 private:
  struct Usage {
    int num_calls = 0;
    size_t bytes = 0;
  };

  explicit CallQuota(const CallLimits& limits) : limits_(limits) {}

  void Release(const std::string& peer, int num_calls, size_t bytes);

  const CallLimits limits_;

  async::Mutex mutex_;
  int num_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, Usage> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_CALL_QUOTA_H_
