// Fetches and method calls: the threads that run them, and creations that fail
// while they wait.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/wire/message_interceptor.h"
#include "rref/method.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "tensor/tensor.h"

namespace hawser::rref {
namespace {

using async::IsOk;
using async::StatusIs;

inline constexpr rpc::Function<int64_t(int64_t)> kNever{"fetch_test.Never"};
inline constexpr rpc::Function<std::string()> kText{"fetch_test.Text"};
inline constexpr rpc::Function<tensor::Tensor()> kOnes{"fetch_test.Ones"};
inline constexpr Method<int64_t(int64_t&)> kGet{"fetch_test.Get"};

// Delays each message until a future is ready.
class HoldingService final : public rpc::Service,
                             public rpc::MessageInterceptor {
 public:
  std::string_view name() const override { return "holding"; }
  absl::Status Start(rpc::ServiceHost&) override { return absl::OkStatus(); }
  rpc::MessageInterceptor* message_interceptor() override { return this; }

  void HoldUntil(async::Future<void> ready) { ready_ = std::move(ready); }

  absl::StatusOr<std::optional<rpc::AutogradMetadata>> OnSend(
      const rpc::WorkerInfo&, std::span<const tensor::Tensor>) override {
    if (ready_.has_value()) (void)ready_->Wait();
    return std::nullopt;
  }
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const rpc::WorkerInfo&, const rpc::AutogradMetadata&,
      std::span<tensor::Tensor>) override {
    return async::TaskContext();
  }
  absl::Status OnReceiveReply(const rpc::WorkerInfo&,
                              const rpc::AutogradMetadata&,
                              std::span<tensor::Tensor>) override {
    return absl::OkStatus();
  }

 private:
  std::optional<async::Future<void>> ready_;
};

class FetchTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(RegisterMethod(job_.registry(), kGet,
                               [](int64_t& value) { return value; }),
                IsOk());
    HoldingService* holding = nullptr;
    job_.StartAll(2, [&](int rank, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
      if (rank != 0) return;
      auto service = std::make_unique<HoldingService>();
      holding = service.get();
      options.services.push_back(std::move(service));
    });
    job_.network().SetMethodFaults("/hawser.v1.RRefService/Create",
                                   {.drop_request = 1});
    auto rref =
        Remote(job_.agent(0), "w1",
               rpc::CallOptions{.timeout = absl::Milliseconds(50)}, kNever, 1);
    ASSERT_THAT(rref, IsOk());
    rref_ = *std::move(rref);
    // Messages are now sent only after the creation has failed.
    holding->HoldUntil(rref_.WhenConfirmed());
    start_ = absl::Now();
  }
  void TearDown() override {
    // Long before the timeout of the call.
    EXPECT_LT(absl::Now() - start_, absl::Seconds(15));
  }

  const absl::Duration limit_ = absl::Seconds(30);
  rpc::TestJob job_;
  RRef<int64_t> rref_;
  absl::Time start_;
};

TEST_F(FetchTest, DoesNotWaitForACreationThatFailedWhileItWasSent) {
  EXPECT_THAT(rref_.ToHere(limit_),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       testing::HasSubstr("creation")));
}

TEST_F(FetchTest, MethodDoesNotWaitForACreationThatFailedWhileItWasSent) {
  EXPECT_THAT(
      Sync(job_.agent(0), rref_, rpc::CallOptions{.timeout = limit_}, kGet),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               testing::HasSubstr("creation")));
}

// Tensors are returned on the thread that received the request. Values that are
// slow to encode use a thread of the pool.
TEST(FetchExecutorTest, OnlyValuesSlowToEncodeUseTheOwnersPool) {
  absl::Notification freed;
  rpc::TestJob job;
  ASSERT_THAT(job.registry().Register(kText, [] { return std::string("text"); },
                                      {.run_on = rpc::RunOn::Inline()}),
              IsOk());
  ASSERT_THAT(
      job.registry().Register(kOnes, [] { return tensor::Tensor::Ones({2}); },
                              {.run_on = rpc::RunOn::Inline()}),
      IsOk());
  job.StartAll(2, [](int, rpc::AgentOptions& options) {
    options.services.push_back(std::make_unique<RRefService>());
    options.num_threads = 1;
  });
  const auto text = Remote(job.agent(0), "w1", kText);
  const auto ones = Remote(job.agent(0), "w1", kOnes);
  ASSERT_THAT(text, IsOk());
  ASSERT_THAT(ones, IsOk());
  ASSERT_THAT(text->ToHere(), IsOk());

  absl::Notification occupied;
  job.agent(1).host().executor().Post([&] {
    occupied.Notify();
    freed.WaitForNotification();
  });
  occupied.WaitForNotification();
  const auto later = text->ToHereAsync();
  const auto now = ones->ToHere();
  EXPECT_FALSE(later.ready());
  freed.Notify();
  EXPECT_THAT(now, IsOk());
  EXPECT_THAT(later.Wait(), async::IsOkAndHolds("text"));
}

}  // namespace
}  // namespace hawser::rref
