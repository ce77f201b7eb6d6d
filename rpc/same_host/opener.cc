#include "rpc/same_host/opener.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "ipc/peer_process.h"
#include "proto/same_host.pb.h"
#include "rpc/same_host/handshake.h"
#include "rpc/same_host/link.h"

namespace hawser::rpc {
namespace {

constexpr char kOpenPath[] = "/hawser.v1.SameHostService/Open";
constexpr absl::Duration kOpenTimeout = absl::Seconds(10);

}  // namespace

SameHostOpener::SameHostOpener(std::shared_ptr<Connection> socket,
                               std::shared_ptr<ipc::EventLoop> loop,
                               std::shared_ptr<Gate> gate,
                               size_t max_message_bytes)
    : socket_(std::move(socket)),
      loop_(std::move(loop)),
      gate_(std::move(gate)),
      max_message_bytes_(max_message_bytes) {}

void SameHostOpener::Open(Done done) {
  v1::OpenSameHostRequest request;
  request.set_boot_id(ipc::BootId());
  socket_->Call(
      kOpenPath, Payload(request.SerializeAsString()),
      async::AddDelay(std::chrono::steady_clock::now(), kOpenTimeout),
      [loop = loop_.get(), gate = gate_, limit = max_message_bytes_,
       done = std::move(done)](absl::StatusOr<Payload> reply) mutable {
        Gate::Entry entry(gate.get());
        if (!entry) return;
        OnReply(loop, limit, std::move(reply), std::move(done));
      });
}

void SameHostOpener::OnReply(ipc::EventLoop* loop, size_t max_message_bytes,
                             absl::StatusOr<Payload> reply, Done done) {
  v1::OpenSameHostReply door;
  absl::StatusOr<std::string> bytes =
      reply.ok() ? reply->Flatten() : reply.status();
  if (bytes.ok() && !door.ParseFromString(*bytes)) {
    bytes = absl::InternalError("the reply is malformed");
  }
  if (!bytes.ok()) {
    std::move(done)(bytes.status());
    return;
  }
  ConnectSameHost(
      loop, door, max_message_bytes,
      [loop, done = std::move(done)](
          absl::StatusOr<SameHostLink::Parts> connected) mutable {
        if (connected.ok()) {
          std::move(done)(
              std::make_shared<SameHostLink>(*std::move(connected), loop));
        } else {
          // All errors are temporary: a peer that closes the socket at once,
          // because it has no descriptors or watches left, also causes
          // FAILED_PRECONDITION.
          std::move(done)(absl::UnavailableError(connected.status().message()));
        }
      });
}

}  // namespace hawser::rpc
