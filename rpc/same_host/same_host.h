// A transport's part that goes through memory of this machine.

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
#include "rpc/same_host/handshake.h"
#include "rpc/same_host/link.h"
#include "rpc/same_host/server.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Puts a way through shared memory beside the socket: small messages travel in
// rings, of large ones the receiver copies the bytes straight from the sender's
// memory, once (docs/rpc/same_host.md). Peers see the same deadlines, errors
// and limits. Who may come in is decided over the socket. Thread-safe.
class SameHost {
 public:
  struct Options {
    size_t max_message_bytes = 0;
    // How long a thread polls before it sleeps.
    absl::Duration spin;
  };

  // `gate` is closed, between Stop and Shutdown, by the owner.
  SameHost(Options options, std::shared_ptr<Gate> gate);
  // Does Shutdown.
  ~SameHost();

  // Serves `methods` also through memory. Returns the method, to be served at
  // the socket, by which authenticated clients ask for it. At most once.
  TransportMethod Serve(const std::vector<TransportMethod>& methods);

  // A connection that begins with `socket`.
  std::shared_ptr<Connection> Wrap(std::shared_ptr<Connection> socket);

  // Serves no more: calls under way are cut off. Connections are closed by
  // whoever has them.
  void Stop();
  // Returns when nothing runs any more.
  void Shutdown();

 private:
  struct Link {
    std::weak_ptr<SameHostLink> link;
    // The worker that the client has proven to be, or else its process.
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
  std::shared_ptr<const SameHostMethods> methods_;

  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Made when first needed.
  std::shared_ptr<ipc::EventLoop> loop_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SameHostAcceptor> acceptor_ ABSL_GUARDED_BY(mutex_);
  std::vector<Link> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_SAME_HOST_H_
