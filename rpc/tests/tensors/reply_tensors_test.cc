// Tensors of replies in memory that the caller reads without another copy.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
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

  // The tensor that was kept last.
  tensor::Tensor TakeKept() {
    const async::MutexLock lock(&mutex_);
    tensor::Tensor last = kept_.back();
    kept_.pop_back();
    return last;
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

// With the transport, and whether replies may stay in shared memory.
using Param = std::tuple<TransportParam, bool>;

class ReplyTensorsTest : public testing::TestWithParam<Param> {
 protected:
  ReplyTensorsTest() : job_(MakeTransportFactory(std::get<0>(GetParam()))) {}

  void SetUp() override {
    job_.StartAll(2, [this](int rank, AgentOptions& options) {
      auto service = std::make_unique<CountService>();
      if (rank == 1) service_ = service.get();
      options.services.push_back(std::move(service));
    });
  }

  async::Future<Message<EchoReply>> Send(const std::string& text,
                                         std::vector<tensor::Tensor> tensors) {
    EchoRequest request;
    request.set_text(text);
    return job_.agent(0).host().CallMethod(
        "w1", kCount, request, std::move(tensors),
        {.in_place_reply = std::get<1>(GetParam())});
  }

  async::Future<Message<EchoReply>> Begin(const std::string& text,
                                          const std::vector<int64_t>& sizes,
                                          int64_t first) {
    std::vector<tensor::Tensor> tensors;
    for (const int64_t size : sizes) {
      tensors.push_back(tensor::Tensor::Full({size},
                                             static_cast<double>(first++),
                                             {.dtype = tensor::DType::kI64}));
    }
    return Send(text, std::move(tensors));
  }

  // Whether replies stay in place once the first call has made the link, and
  // the peer knows which memory is free.
  bool EventuallyInPlace(int max_calls = 100'000) {
    for (int i = 0; i < max_calls; ++i) {
      if (RepliesStayInPlace()) return true;
    }
    return false;
  }

  // Whether the caller's tensor is the memory that the handler has written.
  bool RepliesStayInPlace() {
    const absl::StatusOr<Message<EchoReply>> reply =
        Begin("keep", {1000}, 3).Wait();
    if (!reply.ok()) return false;
    tensor::Tensor written = service_->TakeKept();
    written.data<int64_t>()[5] = -1;
    return reply->tensors[0].data<int64_t>()[5] == -1;
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

  void ExpectInPlaceIfAllowed() {
    const bool expected = GetParam() == Param(TransportParam::kSameHost, true);
    EXPECT_EQ(expected ? EventuallyInPlace() : EventuallyInPlace(100),
              expected);
  }

  TestJob job_;
  // Of w1.
  CountService* service_ = nullptr;
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

TEST_P(ReplyTensorsTest, RepliesInSharedMemoryStayThereOnRequest) {
  ExpectInPlaceIfAllowed();
}

// More than the heap of a link holds.
TEST_P(ReplyTensorsTest, ACallerMayKeepReplies) {
  const std::vector<int64_t> sizes = {60000};
  std::vector<absl::StatusOr<Message<EchoReply>>> kept;
  for (int64_t i = 0; i < 30; ++i) kept.push_back(Begin("", sizes, i).Wait());
  ExpectCount(Begin("", kSizes, 7).Wait(), kSizes, 7);
  for (int64_t i = 0; i < 30; ++i) {
    ExpectCount(kept[static_cast<size_t>(i)], sizes, i);
  }
  // Once they are dropped, their memory is used again.
  kept.clear();
  ExpectInPlaceIfAllowed();
}

TEST_P(ReplyTensorsTest, ACallerMayKeepRepliesOfAWorkerThatHasEnded) {
  const std::vector<int64_t> sizes = {1, 513, 60000, 200000};
  const absl::StatusOr<Message<EchoReply>> kept = Begin("", sizes, 9).Wait();
  EXPECT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  ExpectCount(kept, sizes, 9);
}

std::string NameOf(const testing::TestParamInfo<Param>& test) {
  return ToString(std::get<0>(test.param)) +
         (std::get<1>(test.param) ? "InPlace" : "Copied");
}

INSTANTIATE_TEST_SUITE_P(Transports, ReplyTensorsTest,
                         testing::Combine(testing::ValuesIn(kTransportParams),
                                          testing::Bool()),
                         NameOf);

}  // namespace
}  // namespace hawser::rpc
