// Transport between processes over gRPC.

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
#include "net/auth/identity.h"
#include "rpc/grpc/limits.h"
#include "rpc/transport/transport.h"

namespace hawser::net {
class Credentials;
}  // namespace hawser::net

namespace hawser::rpc {

struct GrpcTransportOptions {
  // Credentials of this worker, which also set its requirements on peers. Null
  // for none.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
  // Allows Listen at any address without TLS, with a warning once a minute. For
  // networks in which every machine is trusted.
  bool allow_insecure_network = false;
  // Maximum size of messages sent and received. Must be the same at both ends.
  size_t max_message_bytes = size_t{512} << 20;
  // Threads that wait for messages and run callbacks of futures and inline
  // functions; a thread that blocks is replaced meanwhile. A second thread
  // speeds up many concurrent small calls, and slows down single calls and
  // large tensors (docs/performance.md).
  int num_polling_threads = 1;
  // Limits of the server.
  GrpcLimits limits = {};
  // Peers on this machine, of the same user, talk through shared memory
  // (docs/rpc/same_host.md), once they have met at the socket. Not served where
  // the credentials have an authorization policy.
  bool same_host = true;
  // How long a thread polls for messages before it sleeps; at the socket only
  // if recent polling was successful. A blocking call over the socket polls
  // four times as long for its reply, unless recent replies were late. 0
  // disables polling, which leaves the cores to other work and costs a wake-up
  // per message.
  absl::Duration spin = absl::Microseconds(50);
  // Makes malloc cache the memory of messages, in the whole process:
  // rpc/grpc/tuning/malloc_tuning.h.
  bool tune_malloc = true;
  // Polling threads never sleep, at the socket and in shared memory. This
  // avoids wake-ups, but occupies one core per process.
  bool busy_poll = false;
};

// Addresses are "host:port", "[v6]:port" and "unix:/path". Without TLS, Listen
// accepts only loopback addresses and Unix sockets, which serve only their own
// user and root. Port 0 selects a free port. Raises the process's limit on open
// files.
//
// Serves grpc.health.v1 for "", each served service, and each role.
//
// Errors of Listen:
//   kFailedPrecondition  not a loopback address, without TLS:
//                        net::Credentials::CheckMayListen.
//   kInvalidArgument     the address is malformed, or not of this machine; or a
//                        limit is not positive.
//   kPermissionDenied    the port needs privileges.
//   kUnavailable         the address is in use, or no descriptors are left.
class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(GrpcTransportOptions options = {});
  ~GrpcTransport() override;

  absl::StatusOr<std::string> Listen(
      std::string_view address, std::vector<TransportMethod> methods) override;
  absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target) override;
  // By a connection of its own, which ends before gRPC sees it.
  void Probe(const std::string& address, absl::Duration timeout,
             absl::AnyInvocable<void(absl::Status) &&> done) override;
  std::optional<net::Identity> identity() const override;
  void SetRoles(const std::vector<std::string>& roles) override;
  void SetServing(bool serving) override;
  // Of this worker's server: "connections_accepted", "connections_refused",
  // "call_streams_accepted", "call_stream_calls".
  std::map<std::string, int64_t> DebugNumbers() const override;
  void Shutdown() override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TRANSPORT_H_
