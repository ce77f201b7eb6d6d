// The server end of a link.

#ifndef HAWSER_RPC_SAME_HOST_SERVER_H_
#define HAWSER_RPC_SAME_HOST_SERVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "net/auth/identity.h"
#include "rpc/same_host/link.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Methods served to all links.
class SameHostMethods {
 public:
  explicit SameHostMethods(const std::vector<TransportMethod>& methods);

  // Returns null if there is none.
  const TransportMethod* Find(const std::string& path) const;

 private:
  absl::flat_hash_map<std::string, TransportMethod> methods_;
};

// The calls of one client. Thread-safe.
class SameHostServer final
    : public SameHostLink::Handler,
      public std::enable_shared_from_this<SameHostServer> {
 public:
  // `caller` is the client's authenticated identity, if any.
  SameHostServer(std::weak_ptr<SameHostLink> link,
                 std::shared_ptr<const SameHostMethods> methods,
                 std::optional<net::Identity> caller)
      : link_(std::move(link)),
        methods_(std::move(methods)),
        caller_(std::move(caller)) {}

  SameHostLink::Work OnMessage(LinkMessage message) override;
  void OnEnd(const absl::Status& status) override;
  async::MonotonicTime OnTime(async::MonotonicTime) override {
    return async::kNever;
  }

 private:
  class Call;

  SameHostLink::Work OnRequest(LinkMessage message);
  std::shared_ptr<Cancellation> Take(uint64_t call);

  const std::weak_ptr<SameHostLink> link_;
  const std::shared_ptr<const SameHostMethods> methods_;
  const std::optional<net::Identity> caller_;

  async::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Calls without a reply yet.
  absl::flat_hash_map<uint64_t, std::shared_ptr<Cancellation>> calls_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_SERVER_H_
