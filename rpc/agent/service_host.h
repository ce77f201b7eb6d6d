// The face that an agent shows to its services.

#ifndef HAWSER_RPC_AGENT_SERVICE_HOST_H_
#define HAWSER_RPC_AGENT_SERVICE_HOST_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/executor.h"
#include "async/future.h"
#include "rpc/agent/service.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/decoder.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

class Agent;

// The agent as its services see it: a Service gets it in Start, and may use it
// until its Stop has returned. Unit tests of services give them a
// FakeServiceHost (rpc/testing/fakes/).
//
// Thread-safe, except that methods are registered in Service::Start alone.
// Errors of calls are those of rpc::Agent.
class ServiceHost {
 public:
  virtual ~ServiceHost() = default;

  // --- Methods.

  // Serves `method`. `handler` takes (const MethodCall&, Message<Request>),
  // returns Future<Message<Reply>>, and runs where `options` say, in several
  // threads at once unless they name a queue. A method of class AT_MOST_ONCE is
  // not run again for a repeated message; the others may be.
  //
  //   kInvalidArgument     the binary links no such method, or the method
  //                        declares no delivery class.
  //   kAlreadyExists       the method is served already.
  //   kFailedPrecondition  the agent serves already.
  template <class Request, class Reply, class Handler>
  absl::Status RegisterMethod(const ServiceMethod<Request, Reply>& method,
                              Handler handler, MethodOptions options = {}) {
    return RegisterRawMethod(
        method, internal::WrapHandler<Request, Reply>(std::move(handler)),
        std::move(options));
  }

  // Calls `method` of worker `to`. Unless it is AT_MOST_ONCE, tries again, 50
  // ms and more apart, after kUnavailable (the peer not being lost) and an
  // attempt's timeout. `tensors` must not be changed until the future
  // completes.
  template <class Request, class Reply>
  async::Future<Message<Reply>> CallMethod(
      const Destination& to, const ServiceMethod<Request, Reply>& method,
      const std::type_identity_t<Request>& request,
      std::vector<tensor::Tensor> tensors = {},
      const MethodCallOptions& options = {}) {
    absl::StatusOr<RawMessage> raw =
        internal::SerializeMessage(request, std::move(tensors));
    if (!raw.ok()) {
      return async::MakeReadyFuture<Message<Reply>>(raw.status());
    }
    return CallRawMethod(to, method, std::move(raw).value(), options)
        .Then([](absl::StatusOr<RawMessage> reply)
                  -> absl::StatusOr<Message<Reply>> {
          if (!reply.ok()) return std::move(reply).status();
          return internal::ParseMessage<Reply>(std::move(reply).value());
        });
  }

  // --- Functions that a method runs for its caller.

  // The function of the agent's registry that `call` asks for, if its peer may
  // call it: FunctionOptions. May block where there is no TLS and the peer is
  // not known yet. Errors of FunctionRegistry::Find, and
  //
  //   kPermissionDenied   naming the caller, its roles and those it lacks.
  //   kResourceExhausted  the request is longer than the function takes.
  virtual absl::StatusOr<const RegisteredFunction*> FindFunction(
      const MethodCall& call, std::string_view name,
      std::string_view signature) = 0;

  // Runs `function` here with values that a peer encoded: reads the arguments
  // in this call, waits for their prerequisites without holding a thread, and
  // runs it where its options say, under the caller's TaskContext.
  virtual async::Future<ErasedValue> Invoke(const RegisteredFunction& function,
                                            Decoder& arguments) = 0;

  // --- Workers.

  // This worker. Its address is known once the agent serves.
  virtual const WorkerInfo& info() const = 0;
  // All workers known, by rank; with a world size: all.
  virtual std::vector<WorkerInfo> workers() const = 0;
  // As Agent::FindWorker: may ask the store, and block.
  virtual absl::StatusOr<WorkerInfo> FindWorker(const Destination& worker) = 0;
  // Whether that worker was found lost.
  virtual bool IsLost(const WorkerInfo& worker) const = 0;

  // --- Surroundings.

  virtual async::Clock& clock() const = 0;
  virtual async::Executor& executor() const = 0;
  // Of a call that names none.
  virtual absl::Duration default_timeout() const = 0;

  // The agent, for the Encoder and Decoder of values, and for CurrentCall. Null
  // in a fake.
  virtual Agent* agent() const = 0;

  // The attached service of that class; null if there is none.
  template <class S>
  S* service() const {
    for (Service* candidate : services()) {
      if (auto* found = dynamic_cast<S*>(candidate)) return found;
    }
    return nullptr;
  }

 protected:
  virtual absl::Status RegisterRawMethod(const MethodName& method,
                                         RawMethodHandler handler,
                                         MethodOptions options) = 0;
  virtual async::Future<RawMessage> CallRawMethod(
      const Destination& to, const MethodName& method, RawMessage request,
      const MethodCallOptions& options) = 0;
  // In the order in which they started.
  virtual const std::vector<Service*>& services() const = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_SERVICE_HOST_H_
