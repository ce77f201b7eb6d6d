// Methods whose handlers read the tensors of a request themselves.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/service_method.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;

constexpr ServiceMethod<EchoRequest, EchoReply> kSum{
    "hawser.rpc_test.EchoService.Read"};

// Adds the elements of all tensors in blocks, without a buffer for a tensor.
class SumService final : public Service {
 public:
  std::string_view name() const override { return "sum"; }
  absl::Status Start(ServiceHost& host) override {
    host_ = &host;
    return host.RegisterMethod(
        kSum,
        [this](const MethodCall& call, const Message<EchoRequest>& request) {
          EXPECT_TRUE(request.tensors.empty());
          if (request.body.text() == "later") {
            // Tensors may outlive the handler.
            async::Promise<Message<EchoReply>> promise;
            async::Future<Message<EchoReply>> future = promise.future();
            host_->executor().Post([tensors = call.tensors,
                                    promise = std::move(promise)]() mutable {
              promise.Set(Sum(tensors));
            });
            return future;
          }
          return async::MakeReadyFuture<Message<EchoReply>>(Sum(call.tensors));
        },
        {.lazy_tensors = true});
  }

 private:
  static absl::StatusOr<Message<EchoReply>> Sum(
      const std::vector<LazyTensor>& tensors) {
    double sum = 0;
    std::vector<float> block(1024);
    for (const LazyTensor& tensor : tensors) {
      for (size_t offset = 0; offset < tensor.bytes();) {
        const size_t size =
            std::min(block.size() * sizeof(float), tensor.bytes() - offset);
        const std::span<std::byte> memory =
            std::as_writable_bytes(std::span(block)).first(size);
        RETURN_IF_ERROR(tensor.ReadInto(offset, memory));
        for (size_t i = 0; i < size / sizeof(float); ++i) sum += block[i];
        offset += size;
      }
    }
    Message<EchoReply> reply;
    reply.body.set_text(absl::StrCat(static_cast<int64_t>(sum)));
    return reply;
  }

  ServiceHost* host_ = nullptr;
};

class LazyTensorsTest : public testing::TestWithParam<TransportParam> {
 protected:
  LazyTensorsTest() : job_(MakeTransportFactory(GetParam())) {}

  void SetUp() override {
    job_.StartAll(2, [](int, AgentOptions& options) {
      options.services.push_back(std::make_unique<SumService>());
    });
  }

  double Sum(const std::string& text, std::vector<tensor::Tensor> tensors) {
    EchoRequest request;
    request.set_text(text);
    const absl::StatusOr<Message<EchoReply>> reply =
        job_.agent(0)
            .host()
            .CallMethod("w1", kSum, request, std::move(tensors))
            .Wait();
    EXPECT_THAT(reply, IsOk());
    double sum = -1;
    EXPECT_TRUE(reply.ok() && absl::SimpleAtod(reply->body.text(), &sum));
    return sum;
  }

  TestJob job_;
};

TEST_P(LazyTensorsTest, HandlerReadsBlocks) {
  const tensor::Tensor small = tensor::Tensor::Full({3}, 2.0);
  const tensor::Tensor large = tensor::Tensor::Full({1 << 20}, 1.0);
  EXPECT_EQ(Sum("now", {small}), 6);
  EXPECT_EQ(Sum("now", {small, large, small}), 12 + (1 << 20));
  EXPECT_EQ(Sum("now", {}), 0);
}

TEST_P(LazyTensorsTest, TensorsOutliveTheHandler) {
  const tensor::Tensor large = tensor::Tensor::Full({1 << 20}, 1.0);
  EXPECT_EQ(Sum("later", {large}), 1 << 20);
}

INSTANTIATE_TEST_SUITE_P(Transports, LazyTensorsTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
