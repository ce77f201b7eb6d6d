// A ServiceHost for unit tests of services, without agent and network.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_SERVICE_HOST_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_SERVICE_HOST_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"
#include "rpc/wire/decoder.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// Keeps the calls that a service makes until the test replies to them, and
// gives the service calls of peers that the test makes up. Time stalls
// until the test moves clock(), and closures run when it runs executor();
// methods and functions run in the calling thread, wherever they want to run.
//
// For one thread.
class FakeServiceHost final : public ServiceHost {
 public:
  // A call that the service made.
  template <class Request, class Reply>
  struct SentCall {
    Destination to;
    Message<Request> request;
    MethodCallOptions options;

    // Completes the service's future; once.
    void SetReply(absl::StatusOr<Message<Reply>> result) {
      if (!result.ok()) {
        SetError(reply, result.status());
      } else {
        SetRawReply(reply, result->body, std::move(result->tensors));
      }
    }

    async::Promise<RawMessage> reply;
  };

  explicit FakeServiceHost(WorkerInfo self = MakeWorker(0));
  ~FakeServiceHost() override;

  // Worker "w<rank>" of that rank, and an incarnation of its own.
  static WorkerInfo MakeWorker(int rank);

  // FindWorker finds it from now on.
  void AddWorker(const WorkerInfo& worker) { workers_.push_back(worker); }
  // Counts as lost from now on. The test calls Service::OnWorkerLost.
  void LoseWorker(const WorkerInfo& worker);
  // service<S>() finds it from now on.
  void AddService(Service* service) { services_.push_back(service); }
  // The functions of FindFunction.
  FunctionRegistry& registry() { return registry_; }

  // The oldest call of `method` that was not taken; nothing if there is none,
  // or its request does not parse.
  template <class Request, class Reply>
  std::optional<SentCall<Request, Reply>> TakeCall(
      const ServiceMethod<Request, Reply>& method) {
    std::optional<RawCall> raw = TakeRawCall(method.name());
    if (!raw.has_value()) return std::nullopt;
    absl::StatusOr<Message<Request>> request =
        internal::ParseMessage<Request>(std::move(raw->request));
    if (!request.ok()) return std::nullopt;
    return SentCall<Request, Reply>{std::move(raw->to), *std::move(request),
                                    raw->options, std::move(raw->reply)};
  }
  // Calls made and not taken.
  size_t num_calls() const { return calls_.size(); }

  // The service's reply to a call of `peer`. kUnimplemented: it has not
  // registered the method.
  template <class Request, class Reply>
  async::Future<Message<Reply>> Receive(
      const ServiceMethod<Request, Reply>& method, const WorkerInfo& peer,
      const Request& request, std::vector<tensor::Tensor> tensors = {}) {
    const MethodCall call{.peer = peer,
                          .cancellation = std::make_shared<Cancellation>()};
    return Receive(method, call, request, std::move(tensors));
  }
  // Same, with all that the handler knows of its call.
  template <class Request, class Reply>
  async::Future<Message<Reply>> Receive(
      const ServiceMethod<Request, Reply>& method, const MethodCall& call,
      const Request& request, std::vector<tensor::Tensor> tensors = {}) {
    absl::StatusOr<RawMessage> raw =
        internal::SerializeMessage(request, std::move(tensors));
    if (!raw.ok()) {
      return async::MakeReadyFuture<Message<Reply>>(raw.status());
    }
    return ReceiveRaw(method.name(), call, *std::move(raw))
        .Then([](absl::StatusOr<RawMessage> reply)
                  -> absl::StatusOr<Message<Reply>> {
          if (!reply.ok()) return std::move(reply).status();
          return internal::ParseMessage<Reply>(*std::move(reply));
        });
  }

  // Where the service wants `method` to run; nothing if it has not registered
  // it.
  std::optional<MethodOptions> OptionsOf(const MethodName& method) const;

  absl::StatusOr<const RegisteredFunction*> FindFunction(
      const MethodCall& call, std::string_view name,
      std::string_view signature) override;
  async::Future<ErasedValue> Invoke(const RegisteredFunction& function,
                                    Decoder& arguments) override;
  const WorkerInfo& info() const override { return self_; }
  std::vector<WorkerInfo> workers() const override { return workers_; }
  absl::StatusOr<WorkerInfo> FindWorker(const Destination& worker) override;
  bool IsLost(const WorkerInfo& worker) const override;
  async::SimulatedClock& clock() const override { return clock_; }
  async::ManualExecutor& executor() const override { return executor_; }
  absl::Duration default_timeout() const override { return absl::Seconds(60); }
  store::Store* store() const override { return nullptr; }
  Agent* agent() const override { return nullptr; }

 private:
  // Completes `reply` with an error.
  static void SetError(async::Promise<RawMessage>& reply,
                       const absl::Status& error);
  // Completes `reply` with a message of this body and these tensors.
  static void SetRawReply(async::Promise<RawMessage>& reply,
                          const google::protobuf::MessageLite& body,
                          std::vector<tensor::Tensor> tensors);

  struct RawCall {
    Destination to;
    std::string method;
    RawMessage request;
    MethodCallOptions options;
    async::Promise<RawMessage> reply;
  };
  struct Registered {
    RawMethodHandler handler;
    MethodOptions options;
  };

  absl::Status RegisterRawMethod(const MethodName& method,
                                 RawMethodHandler handler,
                                 MethodOptions options) override;
  async::Future<RawMessage> CallRawMethod(
      const Destination& to, const MethodName& method, RawMessage request,
      const MethodCallOptions& options) override;
  const std::vector<Service*>& services() const override { return services_; }

  std::optional<RawCall> TakeRawCall(std::string_view method);
  async::Future<RawMessage> ReceiveRaw(std::string_view method,
                                       const MethodCall& call,
                                       RawMessage request);

  const WorkerInfo self_;
  mutable async::SimulatedClock clock_;
  mutable async::ManualExecutor executor_;
  FunctionRegistry registry_;
  std::vector<WorkerInfo> workers_;
  absl::flat_hash_set<Incarnation> lost_;
  std::vector<Service*> services_;
  absl::flat_hash_map<std::string, Registered> methods_;
  std::deque<RawCall> calls_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_SERVICE_HOST_H_
