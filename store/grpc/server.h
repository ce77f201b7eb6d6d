#ifndef HAWSER_STORE_GRPC_SERVER_H_
#define HAWSER_STORE_GRPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "store/grpc/server_limits.h"
#include "store/store_limits.h"

namespace hawser::net {
class Credentials;
}  // namespace hawser::net

namespace hawser::store {

struct StoreServerOptions {
  // Host name or address to listen on.
  std::string host = "127.0.0.1";
  // 0 lets the system choose a port; see StoreServer::port().
  int port = 0;
  // Credentials of the server, which also set its requirements on clients. Null
  // for none.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
  // Must be set to listen without TLS on a `host` that is not loopback, since
  // everyone who can connect can then use the server. Logs a warning once a
  // minute.
  bool allow_insecure_network = false;
  StoreLimits limits = {};
  StoreServerLimits server_limits = {};
};

// Counters for debug information.
struct StoreServerStats {
  int64_t num_keys = 0;
  // Calls that wait for keys or watch them.
  int64_t num_waiting = 0;
  // Calls received since the start, of all methods of hawser.v1.Store: also
  // waiting, repeated and refused ones, but not those that gRPC rejects, such
  // as oversized ones.
  int64_t num_calls = 0;
};

// Serves a store to the GrpcStores of a job (service hawser.v1.Store) from the
// memory of its process, usually rank 0. The data is lost when it is destroyed.
// Also serves grpc.health.v1.
class StoreServer {
 public:
  // The server listens when this returns. Errors name the address:
  //   kAlreadyExists       another process listens there.
  //   kInvalidArgument     unknown host, port not within 0..65535, or a limit
  //                        that is not positive.
  //   kPermissionDenied    the port needs privileges.
  //   kFailedPrecondition  the address is not loopback, and there is no TLS.
  //   kUnavailable         other system errors.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(
      const StoreServerOptions& options);

  // Calls Shutdown.
  ~StoreServer();

  // Stops listening and ends all calls, including waiting ones. Idempotent.
  void Shutdown();

  // "host:port" to connect to.
  const std::string& address() const { return address_; }
  int port() const { return port_; }

  StoreServerStats stats() const;

 private:
  class Impl;

  StoreServer(std::string address, int port, std::unique_ptr<Impl> impl);

  const std::string address_;
  const int port_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_GRPC_SERVER_H_
