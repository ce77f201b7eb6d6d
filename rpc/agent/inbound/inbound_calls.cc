#include "rpc/agent/inbound/inbound_calls.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rpc/agent/inbound/function_endpoint.h"
#include "rpc/agent/inbound/method_endpoint.h"
#include "rpc/agent/state/worker_methods.h"
#include "rpc/functions/function_registry.h"

namespace hawser::rpc {
InboundCalls::InboundCalls(Options options)
    : options_(std::move(options)),
      function_quota_(options_.limits),
      method_quota_(options_.limits),
      permission_(options_.state),
      replies_(options_.state),
      runner_(options_.state),
      pipeline_(options_.state, options_.senders, &replies_, &runner_) {}

absl::Status InboundCalls::Register(const MethodName& method,
                                    RawMethodHandler handler,
                                    MethodOptions options) {
  if (!endpoints_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("method '", std::string(method.name()),
                     "' must be registered in Service::Start"));
  }
  return methods_.Add(method, std::move(handler), std::move(options));
}

absl::StatusOr<std::vector<TransportMethod>> InboundCalls::Methods() {
  ASSIGN_OR_RETURN(const MethodDefinition* const call_definition,
                   kCallMethod.Resolve());
  endpoints_.push_back(std::make_unique<FunctionEndpoint>(
      FunctionEndpoint::Options{.state = options_.state,
                                .definition = call_definition,
                                .registry = options_.registry,
                                .quota = &function_quota_,
                                .permission = &permission_,
                                .replies = &replies_,
                                .runner = &runner_}));
  for (const RegisteredMethod* method : methods_.All()) {
    endpoints_.push_back(std::make_unique<MethodEndpoint>(
        MethodEndpoint::Options{.state = options_.state,
                                .method = method,
                                .quota = &method_quota_,
                                .permission = &permission_,
                                .replies = &replies_}));
  }
  std::vector<TransportMethod> methods;
  for (const auto& endpoint : endpoints_) {
    methods.push_back({.path = endpoint->definition().path,
                       .handler =
                           [this, &endpoint = *endpoint](
                               std::unique_ptr<IncomingCall> incoming) {
                             pipeline_.OnCall(endpoint, std::move(incoming));
                           },
                       .hot = endpoint->hot()});
  }
  return methods;
}

absl::StatusOr<const RegisteredFunction*> InboundCalls::FindFunction(
    const MethodCall& call, std::string_view name,
    std::string_view signature) const {
  ASSIGN_OR_RETURN(const RegisteredFunction* const function,
                   options_.registry->Find(name, signature));
  RETURN_IF_ERROR(
      permission_.CheckFunction(*function, call.peer, call.request_bytes));
  return function;
}

}  // namespace hawser::rpc
