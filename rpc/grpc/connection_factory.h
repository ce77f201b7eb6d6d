// Connections of a transport over gRPC.

#ifndef HAWSER_RPC_GRPC_CONNECTION_FACTORY_H_
#define HAWSER_RPC_GRPC_CONNECTION_FACTORY_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/time/time.h"
#include "net/auth/credentials.h"
#include "rpc/grpc/fragments/message_assembler.h"
#include "rpc/grpc/poller.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Whether an address of a transport is of this machine only.
bool IsLoopback(std::string_view address);

// Least limit on messages with which calls are combined into streams, whose
// messages hold several calls.
inline constexpr size_t kMinStreamLimit = size_t{1} << 20;

// Makes connections that use calls of gRPC and, after some calls, call streams.
// Thread-safe.
class ConnectionFactory {
 public:
  struct Options {
    // Outlives the connections.
    Poller* poller = nullptr;
    // Closed before the queue of `poller` is shut down.
    std::shared_ptr<Gate> gate;
    std::shared_ptr<const net::Credentials> credentials;
    size_t max_message_bytes = 0;
    // Limit on the memory of incomplete replies.
    size_t memory_quota_bytes = 0;
    // Spinning of AwaitReply; 0 disables it.
    absl::Duration spin;
  };

  explicit ConnectionFactory(Options options);

  std::shared_ptr<Connection> Make(const ConnectionTarget& target) const;

 private:
  const Options options_;
  const std::shared_ptr<AssemblyBudget> reply_budget_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CONNECTION_FACTORY_H_
