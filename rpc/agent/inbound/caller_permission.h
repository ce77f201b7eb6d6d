// Permission of callers, by their roles.

#ifndef HAWSER_RPC_AGENT_INBOUND_CALLER_PERMISSION_H_
#define HAWSER_RPC_AGENT_INBOUND_CALLER_PERMISSION_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/method_table.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

class RegisteredFunction;

// Checks calls against FunctionOptions and MethodOptions. Thread-safe.
class CallerPermission {
 public:
  explicit CallerPermission(std::shared_ptr<AgentState> state)
      : state_(std::move(state)) {}

  // kPermissionDenied if `caller` lacks the roles; kResourceExhausted if the
  // function does not accept a request of that size.
  absl::Status CheckFunction(const RegisteredFunction& function,
                             const WorkerInfo& caller,
                             size_t request_bytes) const;

  // kPermissionDenied if `caller` is an observer and the method is not for
  // observers.
  absl::Status CheckMethod(const RegisteredMethod& method,
                           const WorkerInfo& caller) const;

 private:
  const std::shared_ptr<AgentState> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_CALLER_PERMISSION_H_
