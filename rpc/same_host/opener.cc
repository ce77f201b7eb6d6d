#include "rpc/same_host/opener.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
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
      parts_(std::make_shared<const Parts>(
          Parts{.loop = std::move(loop),
                .gate = std::move(gate),
                .max_message_bytes = max_message_bytes})) {}

void SameHostOpener::Open(Done done) {
  v1::OpenSameHostRequest request;
  request.set_boot_id(BootId());
  socket_->Call(kOpenPath, Payload(request.SerializeAsString()),
                async::AddDelay(std::chrono::steady_clock::now(), kOpenTimeout),
                [parts = parts_, done = std::move(done)](
                    absl::StatusOr<Payload> reply) mutable {
                  OnReply(parts, std::move(reply), std::move(done));
                });
}

void SameHostOpener::OnReply(const std::shared_ptr<const Parts>& parts,
                             absl::StatusOr<Payload> reply, Done done) {
  Gate::Entry entry(parts->gate.get());
  if (!entry) return;
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
      parts->loop.get(), door, parts->max_message_bytes,
      [parts, done = std::move(done)](
          absl::StatusOr<SameHostLink::Parts> connected) mutable {
        if (connected.ok()) {
          std::move(done)(std::make_shared<SameHostLink>(*std::move(connected),
                                                         parts->loop.get()));
        } else {
          // All errors are temporary: a peer that closes the socket at once,
          // because it has no descriptors or watches left, also causes
          // FAILED_PRECONDITION.
          std::move(done)(absl::UnavailableError(connected.status().message()));
        }
      });
}

}  // namespace hawser::rpc
