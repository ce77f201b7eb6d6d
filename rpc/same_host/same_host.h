// Shared-memory part of a transport.

#ifndef HAWSER_RPC_SAME_HOST_SAME_HOST_H_
#define HAWSER_RPC_SAME_HOST_SAME_HOST_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "net/auth/identity.h"
#include "net/per_peer_quota.h"
#include "rpc/link/link_server.h"
#include "rpc/same_host/handshake.h"
#include "rpc/same_host/link.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Adds shared-memory links to a transport over sockets: small messages are sent
// through rings; bytes of large ones are copied once, by the receiver, directly
// from the sender's memory (docs/rpc/same_host.md). Deadlines, errors and
// limits are the same as over the socket. Clients are authenticated over the
// socket. Thread-safe.
class SameHost {
 public:
  struct Options {
    size_t max_message_bytes = 0;
    // For replies that clients have not read.
    std::shared_ptr<net::PerPeerQuota> reply_quota = nullptr;
    // Polling time of a thread before it sleeps.
    absl::Duration spin;
  };

  // The owner closes `gate` between Stop and Shutdown.
  SameHost(Options options, std::shared_ptr<Gate> gate);
  // Calls Shutdown.
  ~SameHost();

  // Serves `methods` also through shared memory. Returns the method, to be
  // served over the socket, by which authenticated clients request a link. Call
  // at most once.
  TransportMethod Serve(const std::vector<TransportMethod>& methods);

  // Returns a connection that starts with `socket`.
  std::shared_ptr<Connection> Wrap(std::shared_ptr<Connection> socket);

  // Stops serving and aborts calls in flight. Connections are closed by their
  // owners.
  void Stop();
  // Returns when no callback runs any more.
  void Shutdown();

 private:
  struct Link {
    std::weak_ptr<SameHostLink> link;
    // The authenticated worker of the client, or else its process.
    std::string client;
  };

  absl::StatusOr<v1::OpenSameHostReply> Open(IncomingCall& call);
  absl::StatusOr<std::shared_ptr<SameHostAcceptor>> acceptor();
  absl::StatusOr<std::shared_ptr<ipc::EventLoop>> LoopLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ShouldAccept(const ipc::PeerProcess& peer,
                    const std::optional<net::Identity>& caller);
  void OnLink(SameHostLink::Parts parts, std::optional<net::Identity> caller);

  const Options options_;
  const std::shared_ptr<Gate> gate_;
  std::shared_ptr<const LinkMethods> methods_;

  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Created on first use.
  std::shared_ptr<ipc::EventLoop> loop_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SameHostAcceptor> acceptor_ ABSL_GUARDED_BY(mutex_);
  std::vector<Link> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_SAME_HOST_H_
