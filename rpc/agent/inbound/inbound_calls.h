// The calls that an agent serves.

#ifndef HAWSER_RPC_AGENT_INBOUND_INBOUND_CALLS_H_
#define HAWSER_RPC_AGENT_INBOUND_INBOUND_CALLS_H_

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "rpc/agent/inbound/caller_permission.h"
#include "rpc/agent/inbound/endpoint.h"
#include "rpc/agent/inbound/function_runner.h"
#include "rpc/agent/inbound/inbound_pipeline.h"
#include "rpc/agent/inbound/reply_sender.h"
#include "rpc/agent/inbound/sender_directory.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/method_table.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/decoder.h"

namespace hawser::rpc {

class FunctionRegistry;
class RegisteredFunction;

// The methods that peers call, and the InboundPipeline that runs their calls.
// Registered functions are called through one of them.
//
// Thread-safe, except that Register and Methods precede all calls. The
// transport must be shut down, and the agent's gate closed, before it is
// destroyed.
class InboundCalls {
 public:
  struct Options {
    std::shared_ptr<AgentState> state;
    // Both must outlive this object.
    SenderDirectory* senders;
    const FunctionRegistry* registry;
    CallLimits limits;
  };

  explicit InboundCalls(Options options);
  InboundCalls(const InboundCalls&) = delete;
  InboundCalls& operator=(const InboundCalls&) = delete;

  // Serves `method`; before Methods. Errors of MethodTable::Add, and
  // kFailedPrecondition after Methods.
  absl::Status Register(const MethodName& method, RawMethodHandler handler,
                        MethodOptions options);
  // Returns the methods for Transport::Listen: all registered, and that which
  // calls functions. Call once.
  absl::StatusOr<std::vector<TransportMethod>> Methods();

  // ServiceHost::FindFunction and Invoke.
  absl::StatusOr<const RegisteredFunction*> FindFunction(
      const MethodCall& call, std::string_view name,
      std::string_view signature) const;
  async::Future<ErasedValue> Invoke(const RegisteredFunction& function,
                                    Decoder& arguments) {
    return runner_.Invoke(function, arguments);
  }

  // Drops what is remembered of a worker that was lost.
  void Forget(Incarnation worker) { pipeline_.Forget(worker); }
  size_t num_remembered_senders() const {
    return pipeline_.num_remembered_senders();
  }

 private:
  const Options options_;
  CallQuota function_quota_;
  CallQuota method_quota_;
  CallerPermission permission_;
  ReplySender replies_;
  FunctionRunner runner_;
  InboundPipeline pipeline_;
  MethodTable methods_;
  // Empty until Methods.
  std::vector<std::unique_ptr<const Endpoint>> endpoints_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_INBOUND_CALLS_H_
