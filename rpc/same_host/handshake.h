// Handshake by which two processes on one machine establish shared memory
// (proto/same_host.proto).

#ifndef HAWSER_RPC_SAME_HOST_HANDSHAKE_H_
#define HAWSER_RPC_SAME_HOST_HANDSHAKE_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "fs/unique_fd.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "net/auth/identity.h"
#include "proto/same_host.pb.h"
#include "rpc/same_host/link.h"

namespace hawser::rpc {

// The server end. Thread-safe.
class SameHostAcceptor final
    : public std::enable_shared_from_this<SameHostAcceptor> {
 public:
  // Receives the parts of each new link, on a thread of the loop.
  using OnLink = std::function<void(SameHostLink::Parts,
                                    std::optional<net::Identity> caller)>;

  // Whether a client may have one more link. If not, its calls use the socket.
  using ShouldAccept = std::function<bool(const ipc::PeerProcess&,
                                          const std::optional<net::Identity>&)>;

  // `loop` must outlive this object. `should_accept` and `on_link` run without
  // holding a lock.
  static absl::StatusOr<std::shared_ptr<SameHostAcceptor>> Start(
      ipc::EventLoop* loop, size_t max_message_bytes,
      ShouldAccept should_accept, OnLink on_link);

  // Returns the reply to a client that requests a link. Its authenticated
  // identity, if any, applies to all calls of the link. kFailedPrecondition,
  // kResourceExhausted: see proto/same_host.proto.
  absl::StatusOr<v1::OpenSameHostReply> Admit(
      const v1::OpenSameHostRequest& request,
      std::optional<net::Identity> caller);

  // False once it cannot accept connections any more; start another one then.
  bool listening();

  // Stops accepting connections. Idempotent.
  void Close();

 private:
  // A connection whose handshake is not complete.
  struct Pending {
    SameHostLink::Parts parts;
    std::optional<net::Identity> caller;
    bool welcomed = false;
  };
  struct Ticket {
    async::MonotonicTime good_until;
    std::optional<net::Identity> caller;
  };

  SameHostAcceptor(ipc::EventLoop* loop, size_t max_message_bytes,
                   ShouldAccept should_accept, OnLink on_link, std::string name,
                   fs::UniqueFd listener)
      : loop_(*loop),
        max_message_bytes_(max_message_bytes),
        should_accept_(std::move(should_accept)),
        on_link_(std::move(on_link)),
        name_(std::move(name)),
        listener_(std::move(listener)) {}

  void Accept();
  // Continues the handshake of a readable connection.
  void Continue(int fd);
  absl::Status Welcome(Pending& pending);
  std::optional<Ticket> TakeTicket(const std::string& bytes);
  void DropLocked(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ipc::EventLoop& loop_;
  const size_t max_message_bytes_;
  const ShouldAccept should_accept_;
  const OnLink on_link_;
  const std::string name_;

  async::Mutex mutex_;
  fs::UniqueFd listener_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Ticket> tickets_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, std::shared_ptr<Pending>> pending_
      ABSL_GUARDED_BY(mutex_);
  // Oldest first.
  std::list<int> order_ ABSL_GUARDED_BY(mutex_);
};

// The client end: connects to the socket named in `reply`. `done` runs at most
// once, on a thread of the loop or in this call; it does not run if the loop
// ends first.
void ConnectSameHost(
    ipc::EventLoop* loop, const v1::OpenSameHostReply& reply,
    size_t max_message_bytes,
    absl::AnyInvocable<void(absl::StatusOr<SameHostLink::Parts>) &&> done);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_HANDSHAKE_H_
