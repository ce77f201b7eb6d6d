// Echo service for tests.

#ifndef HAWSER_RPC_TESTING_ECHO_SERVICE_H_
#define HAWSER_RPC_TESTING_ECHO_SERVICE_H_

#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/method_test_service.pb.h"

namespace hawser::rpc {

// Echoes requests, or replies kDataLoss to "fail", and records its steps in
// `events`.
class EchoService final : public Service {
 public:
  // Its methods, a READ and one AT_MOST_ONCE, and their paths.
  using Method = ServiceMethod<rpc_test::EchoRequest, rpc_test::EchoReply>;
  static constexpr Method kRead{"hawser.rpc_test.EchoService.Read"};
  static constexpr Method kOnce{"hawser.rpc_test.EchoService.Once"};
  static constexpr char kReadPath[] = "/hawser.rpc_test.EchoService/Read";
  static constexpr char kOncePath[] = "/hawser.rpc_test.EchoService/Once";

  explicit EchoService(std::vector<std::string>* events) : events_(*events) {}

  std::string_view name() const override { return "echo"; }

  absl::Status Start(ServiceHost& host) override {
    host_ = &host;
    events_.push_back("start");
    for (const Method* method : {&kRead, &kOnce}) {
      absl::Status status = host.RegisterMethod(
          *method, [this](const MethodCall& call,
                          Message<rpc_test::EchoRequest> request) {
            return Answer(call, std::move(request));
          });
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  async::Future<void> Drain(async::MonotonicTime) override {
    events_.push_back("drain");
    // All workers still serve.
    return host_->CallMethod(WorkerId(0), kRead, rpc_test::EchoRequest())
        .Then([](absl::StatusOr<Message<rpc_test::EchoReply>> reply) {
          return reply.status();
        });
  }
  void OnWorkerLost(const WorkerInfo& worker, const absl::Status&) override {
    events_.push_back("lost " + worker.name);
  }
  void Stop() override { events_.push_back("stop"); }

  std::atomic<int> num_calls{0};

 private:
  async::Future<Message<rpc_test::EchoReply>> Answer(
      const MethodCall& call, Message<rpc_test::EchoRequest> request) {
    ++num_calls;
    Message<rpc_test::EchoReply> reply;
    if (request.body.text() == "fail") {
      return async::MakeReadyFuture<Message<rpc_test::EchoReply>>(
          absl::DataLossError("failed"));
    }
    reply.body.set_text(call.peer.name + ": " + request.body.text());
    reply.tensors = std::move(request.tensors);
    return async::MakeReadyFuture<Message<rpc_test::EchoReply>>(
        std::move(reply));
  }

  ServiceHost* host_ = nullptr;
  std::vector<std::string>& events_;
};

inline rpc_test::EchoRequest MakeEchoRequest(const std::string& text) {
  rpc_test::EchoRequest request;
  request.set_text(text);
  return request;
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_ECHO_SERVICE_H_
