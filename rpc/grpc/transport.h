// The transport between processes: gRPC.

#ifndef HAWSER_RPC_GRPC_TRANSPORT_H_
#define HAWSER_RPC_GRPC_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/auth/credentials.h"
#include "rpc/grpc/limits.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

struct GrpcTransportOptions {
  // What this worker proves to others and wants of them; nothing, if null.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
  // Lets Listen take any address without TLS, and warns once a minute: for
  // networks in which every machine is trusted.
  bool allow_insecure_network = false;
  // The longest message that is sent or taken. The same at both ends.
  size_t max_message_bytes = size_t{512} << 20;
  // Threads that wait for messages, and run callbacks of futures and functions
  // that run inline; one that blocks is replaced meanwhile. A second one helps
  // many small calls at once, and slows single calls and large tensors down
  // (docs/performance.md).
  int num_polling_threads = 1;
  // Of Listen.
  GrpcLimits limits = {};
  // Peers on this machine, of the same user, talk through shared memory
  // (docs/rpc/same_host.md), once they have met at the socket. Not served where
  // the credentials have an authorization policy.
  bool same_host = true;
  // How long a thread looks for messages before it sleeps; at the socket,
  // unless it looked in vain before. A blocking call over the socket looks for
  // its reply for four times as long, unless replies were late before. 0: not
  // at all, which leaves all cores to others and costs a wake-up per message.
  absl::Duration spin = absl::Microseconds(50);
  // Has malloc keep the memory of messages for the next ones, in the whole
  // process: rpc/grpc/tuning/malloc_tuning.h.
  bool tune_malloc = true;
  // Threads look for messages at the socket and in shared memory and never
  // sleep: calls need not wake them up, and each process needs a core for that.
  bool busy_poll = false;
};

// Addresses are "host:port", "[v6]:port" and "unix:/path". Without TLS only
// loopback addresses and Unix sockets, which serve their own user and root
// alone, may be listened at. Port 0 is any free one. Raises the process's limit
// on open files.
//
// Serves grpc.health.v1 for "", each service that is listened for, and each
// role.
//
// Errors of Listen:
//   kFailedPrecondition  not a loopback address, without TLS:
//                        net::Credentials::CheckMayListen.
//   kInvalidArgument     malformed, or not of this machine; a limit is not
//                        positive.
//   kPermissionDenied    the port needs privileges.
//   kUnavailable         the address is in use, or there are no descriptors.
class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(GrpcTransportOptions options = {});
  ~GrpcTransport() override;

  absl::StatusOr<std::string> Listen(
      std::string_view address, std::vector<TransportMethod> methods) override;
  absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target) override;
  std::optional<net::Identity> identity() const override;
  void SetRoles(const std::vector<std::string>& roles) override;
  void SetServing(bool serving) override;
  // "connections_accepted", "connections_refused": by this worker's server.
  std::map<std::string, int64_t> DebugNumbers() const override;
  void Shutdown() override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TRANSPORT_H_
