// Server end of a link: the calls of one client.

#ifndef HAWSER_RPC_LINK_LINK_SERVER_H_
#define HAWSER_RPC_LINK_LINK_SERVER_H_

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
#include "rpc/link/message_link.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// The methods served through links.
class LinkMethods {
 public:
  explicit LinkMethods(const std::vector<TransportMethod>& methods);

  // Returns null if there is none.
  const TransportMethod* Find(const std::string& path) const;

 private:
  absl::flat_hash_map<std::string, TransportMethod> methods_;
};

// The calls of one client. Thread-safe.
class LinkServer final : public LinkHandler,
                         public std::enable_shared_from_this<LinkServer> {
 public:
  // `caller` is the client's authenticated identity, if any.
  LinkServer(std::weak_ptr<MessageLink> link,
             std::shared_ptr<const LinkMethods> methods,
             std::optional<net::Identity> caller)
      : link_(std::move(link)),
        methods_(std::move(methods)),
        caller_(std::move(caller)) {}

  LinkWork OnMessage(LinkMessage message) override;
  bool Expects(uint64_t) override { return false; }
  void OnEnd(const absl::Status& status) override;
  async::MonotonicTime OnTime(async::MonotonicTime) override {
    return async::kNever;
  }

 private:
  class Call;

  LinkWork OnRequest(LinkMessage message);
  std::shared_ptr<Cancellation> Take(uint64_t call);

  const std::weak_ptr<MessageLink> link_;
  const std::shared_ptr<const LinkMethods> methods_;
  const std::optional<net::Identity> caller_;

  async::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Calls without a reply yet.
  absl::flat_hash_map<uint64_t, std::shared_ptr<Cancellation>> calls_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_LINK_LINK_SERVER_H_
