// Interface of an agent for its services.

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
#include "google/protobuf/message_lite.h"
#include "rpc/agent/service.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::store {
class Store;
}  // namespace hawser::store

namespace hawser::rpc {

class Agent;
class Decoder;
class RegisteredFunction;
struct ErasedValue;

// Passed to Service::Start; valid until Service::Stop has returned. Unit tests
// of services use a FakeServiceHost (rpc/testing/fakes/).
//
// Thread-safe, except that methods are registered only in Service::Start.
// Errors of calls are those of rpc::Agent.
class ServiceHost {
 public:
  virtual ~ServiceHost() = default;

  // --- Methods.

  // Serves `method`. `handler` takes (const MethodCall&, Message<Request>),
  // returns Future<Message<Reply>>, and runs on the executor of `options`,
  // concurrently unless that is a queue. For a repeated message, a method of
  // class AT_MOST_ONCE does not run again; others may.
  //
  //   kInvalidArgument     the method is not linked into the binary, or does
  //                        not declare a delivery class.
  //   kAlreadyExists       the method is registered already.
  //   kFailedPrecondition  the agent serves already.
  template <class Request, class Reply, class Handler>
  absl::Status RegisterMethod(const ServiceMethod<Request, Reply>& method,
                              Handler handler, MethodOptions options = {}) {
    return RegisterRawMethod(
        method, internal::WrapHandler<Request, Reply>(std::move(handler)),
        std::move(options));
  }

  // Calls `method` of worker `to`. Unless it is AT_MOST_ONCE, repeats the call
  // after kUnavailable, if the peer is not lost, and after the timeout of an
  // attempt, with a back-off from 50 ms on. `tensors` must not be changed until
  // the future completes.
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

  // The same for a method whose reply has nothing but tensors, which it
  // returns.
  template <class Request, class Reply>
  async::Future<std::vector<tensor::Tensor>> CallForTensors(
      const Destination& to, const ServiceMethod<Request, Reply>& method,
      const std::type_identity_t<Request>& request,
      std::vector<tensor::Tensor> tensors = {},
      const MethodCallOptions& options = {}) {
    return CallForTensorsOf(to, method, request, std::move(tensors), options);
  }

  // --- Functions that a method runs for its caller.

  // Returns a function of the agent's registry for the peer of `call`, after
  // checking FunctionOptions. Without TLS it may block, to read the roles of a
  // peer that is not known yet. Errors of FunctionRegistry::Find, and
  //
  //   kPermissionDenied   names the caller, its roles and the required ones.
  //   kResourceExhausted  the request is larger than the function accepts.
  virtual absl::StatusOr<const RegisteredFunction*> FindFunction(
      const MethodCall& call, std::string_view name,
      std::string_view signature) = 0;

  // Runs `function` on this worker with arguments that a peer encoded. Reads
  // the arguments before it returns, waits for their prerequisites without
  // holding a thread, and runs the function on the executor of its options,
  // under the current TaskContext.
  virtual async::Future<ErasedValue> Invoke(const RegisteredFunction& function,
                                            Decoder& arguments) = 0;

  // --- Workers.

  // This worker. The address is set when the agent serves.
  virtual const WorkerInfo& info() const = 0;
  // All known workers, ordered by rank; with a world size: all workers.
  virtual std::vector<WorkerInfo> workers() const = 0;
  // As Agent::FindWorker; may read the store, and block.
  virtual absl::StatusOr<WorkerInfo> FindWorker(const Destination& worker) = 0;
  // Whether this worker treats `worker` as lost.
  virtual bool IsLost(const WorkerInfo& worker) const = 0;

  // --- Environment.

  virtual async::Clock& clock() const = 0;
  virtual async::Executor& executor() const = 0;
  // Timeout of a call without one of its own.
  virtual absl::Duration default_timeout() const = 0;

  // The store of the job, whose calls block. Null in a fake.
  virtual store::Store* store() const = 0;

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
  async::Future<std::vector<tensor::Tensor>> CallForTensorsOf(
      const Destination& to, const MethodName& method,
      const google::protobuf::MessageLite& request,
      std::vector<tensor::Tensor> tensors, const MethodCallOptions& options);
  // All services, in the order of Start.
  virtual const std::vector<Service*>& services() const = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_SERVICE_HOST_H_
