#include "rpc/agent/register_worker_methods.h"

#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/rpc.pb.h"
#include "rpc/agent/state/worker_methods.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/method.h"
#include "rpc/functions/run_on.h"

namespace hawser::rpc {
namespace {

RawMessage ListFunctions(const FunctionRegistry& registry) {
  v1::ListFunctionsReply reply;
  for (const RegisteredFunction* function : registry.All()) {
    v1::FunctionDescription& description = *reply.add_functions();
    description.set_name(function->name());
    description.set_signature(function->signature());
    const FunctionOptions& options = function->options();
    description.mutable_allowed_roles()->Add(options.allowed_roles.begin(),
                                             options.allowed_roles.end());
    description.set_max_request_bytes(options.max_request_bytes);
  }
  return RawMessage{reply.SerializeAsString(), {}};
}

}  // namespace

absl::Status RegisterWorkerMethods(const FunctionRegistry& functions,
                                   PeerMembership& members,
                                   InboundCalls& inbound) {
  RETURN_IF_ERROR(inbound.Register(
      kListFunctionsMethod,
      [&functions](const MethodCall&, const RawMessage&) {
        return async::MakeReadyFuture<RawMessage>(ListFunctions(functions));
      },
      {.for_observers = true}));
  RETURN_IF_ERROR(inbound.Register(kHeartbeatMethod,
                                   [](const MethodCall&, const RawMessage&) {
                                     return async::MakeReadyFuture<RawMessage>(
                                         RawMessage());
                                   },
                                   {.run_on = RunOn::Inline(),
                                    .counted = false,
                                    .for_observers = true,
                                    .for_unconfirmed_senders = true}));
  return inbound.Register(
      kLeaveMethod,
      [&members](const MethodCall& call, const RawMessage&) {
        return members.OnLeaveNotice(call.peer).Then(
            [](const absl::Status&) -> absl::StatusOr<RawMessage> {
              return RawMessage();
            });
      },
      // The event that it left may arrive first.
      {.run_on = RunOn::Inline(),
       .counted = false,
       .for_left_workers = true,
       .for_unconfirmed_senders = true});
}

}  // namespace hawser::rpc
