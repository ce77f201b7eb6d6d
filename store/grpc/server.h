#ifndef HAWSER_STORE_GRPC_SERVER_H_
#define HAWSER_STORE_GRPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "net/auth/credentials.h"
#include "store/grpc/server_limits.h"
#include "store/store_limits.h"

namespace hawser::store {

struct StoreServerOptions {
  // Name or address of the interface to listen on.
  std::string host = "127.0.0.1";
  // 0 lets the system choose; see StoreServer::port().
  int port = 0;
  // What the server proves to clients and wants of them; nothing, if null.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
  // Without TLS anybody who reaches the server can use it, so that other
  // machines can only be let in knowingly: required where `host` is not
  // loopback. Warns once a minute.
  bool allow_insecure_network = false;
  StoreLimits limits = {};
  StoreServerLimits server_limits = {};
};

// For debug information.
struct StoreServerStats {
  int64_t num_keys = 0;
  // Calls that wait for keys.
  int64_t num_waiting = 0;
};

// Serves a store to the GrpcStores of a job (service hawser.v1.Store), from
// the memory of the process that runs it: usually rank 0. What it holds goes
// away with it. Serves grpc.health.v1 besides.
class StoreServer {
 public:
  // Listens before it returns. Errors name the address:
  //   kAlreadyExists       another process listens there.
  //   kInvalidArgument     no such host, or port not within 0..65535; a limit
  //                        that is not positive.
  //   kPermissionDenied    the port needs privileges.
  //   kFailedPrecondition  not loopback, without TLS.
  //   kUnavailable         anything else the system says.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(
      const StoreServerOptions& options);

  // Does Shutdown.
  ~StoreServer();

  // Ends every call, those that wait too, and the listening. Idempotent.
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
