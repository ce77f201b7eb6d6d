// Tensors of replies in memory that the caller reads without another copy.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;

constexpr ServiceMethod<EchoRequest, EchoReply> kCount{
    "hawser.rpc_test.EchoService.Read"};

// Replies with the numbers from that of the request on, in a tensor for each of
// its tensors, of the same size. Keeps the tensors of requests that say "keep".
class CountService final : public Service {
 public:
  std::string_view name() const override { return "count"; }
  absl::Status Start(ServiceHost& host) override {
    return host.RegisterMethod(
        kCount,
        [this](const MethodCall& call, const Message<EchoRequest>& request) {
          return async::MakeReadyFuture<Message<EchoReply>>(
              Count(call, request.body.text() == "keep"));
        },
        {.lazy_tensors = true});
  }

 private:
  absl::StatusOr<Message<EchoReply>> Count(const MethodCall& call, bool keep) {
    Message<EchoReply> reply;
    for (const LazyTensor& tensor : call.tensors) {
      int64_t first = 0;
      RETURN_IF_ERROR(
          tensor.ReadInto(0, std::as_writable_bytes(std::span(&first, 1))));
      ASSIGN_OR_RETURN(
          tensor::Tensor numbers,
          call.NewReplyTensor(tensor.shape(), tensor::DType::kI64));
      for (int64_t i = 0; i < numbers.num_elements(); ++i) {
        numbers.data<int64_t>()[i] = first + i;
      }
      reply.tensors.push_back(numbers);
      if (keep) {
        const async::MutexLock lock(&mutex_);
        kept_.push_back(numbers);
      }
    }
    return reply;
  }

  async::Mutex mutex_;
  std::vector<tensor::Tensor> kept_ ABSL_GUARDED_BY(mutex_);
};

class ReplyTensorsTest : public testing::TestWithParam<TransportParam> {
 protected:
  ReplyTensorsTest() : job_(MakeTransportFactory(GetParam())) {}

  void SetUp() override {
    job_.StartAll(2, [](int, AgentOptions& options) {
      options.services.push_back(std::make_unique<CountService>());
    });
  }

  async::Future<Message<EchoReply>> Begin(const std::string& text,
                                          const std::vector<int64_t>& sizes,
                                          int64_t first) {
    EchoRequest request;
    request.set_text(text);
    std::vector<tensor::Tensor> tensors;
    for (const int64_t size : sizes) {
      tensors.push_back(tensor::Tensor::Full({size},
                                             static_cast<double>(first++),
                                             {.dtype = tensor::DType::kI64}));
    }
    return job_.agent(0).host().CallMethod("w1", kCount, request,
                                           std::move(tensors));
  }

  static void ExpectCount(const absl::StatusOr<Message<EchoReply>>& reply,
                          const std::vector<int64_t>& sizes, int64_t first) {
    ASSERT_THAT(reply, IsOk());
    ASSERT_EQ(reply->tensors.size(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const tensor::Tensor& tensor = reply->tensors[i];
      ASSERT_EQ(tensor.num_elements(), sizes[i]);
      for (int64_t at = 0; at < sizes[i]; ++at) {
        ASSERT_EQ(tensor.data<int64_t>()[at], first + at);
      }
      ++first;
    }
  }

  TestJob job_;
};

// Around the limits of what is sent in a frame, in the heap and in place.
const std::vector<int64_t> kSizes = {1,     511,   512,   513,
                                     65535, 65536, 65537, 200000};

TEST_P(ReplyTensorsTest, RepliesOfAllSizesArrive) {
  for (int64_t round = 0; round < 50; ++round) {
    ExpectCount(Begin("", kSizes, round).Wait(), kSizes, round);
  }
}

TEST_P(ReplyTensorsTest, RepliesThatAreNotReadYetKeepTheirContent) {
  std::vector<async::Future<Message<EchoReply>>> replies;
  const std::vector<int64_t> sizes = {30000, 1000};
  for (int64_t i = 0; i < 64; ++i) {
    replies.push_back(Begin("", sizes, 100000 * i));
  }
  for (int64_t i = 0; i < 64; ++i) {
    ExpectCount(replies[static_cast<size_t>(i)].Wait(), sizes, 100000 * i);
  }
}

// More than the heap of a link holds.
TEST_P(ReplyTensorsTest, AHandlerMayKeepWhatItSent) {
  const std::vector<int64_t> sizes = {60000};
  for (int64_t i = 0; i < 30; ++i) {
    ExpectCount(Begin("keep", sizes, i).Wait(), sizes, i);
  }
  ExpectCount(Begin("", kSizes, 7).Wait(), kSizes, 7);
}

INSTANTIATE_TEST_SUITE_P(Transports, ReplyTensorsTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
