// What one worker may have another do at once.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

inline constexpr Function<int64_t(std::string)> kHold{"limits.Hold"};

class AgentLimitsTest : public testing::Test {
 protected:
  void Start(CallLimits limits) {
    ASSERT_THAT(job_.registry().Register(kHold,
                                         [this](const std::string&) {
                                           async::Promise<int64_t> promise;
                                           async::Future<int64_t> future =
                                               promise.future();
                                           async::MutexLock lock(&mutex_);
                                           held_.push_back(std::move(promise));
                                           changed_.NotifyAll();
                                           return future;
                                         }),
                IsOk());
    job_.StartAll(2,
                  [&](int, AgentOptions& options) { options.limits = limits; });
  }

  async::Future<int64_t> Hold(std::string argument = "") {
    return job_.agent(0).Async("w1", kHold, std::move(argument));
  }
  void AwaitHeld(size_t count) {
    async::MutexLock lock(&mutex_);
    while (held_.size() < count) changed_.Wait(&mutex_);
  }
  void ReleaseAll() {
    std::vector<async::Promise<int64_t>> held;
    {
      async::MutexLock lock(&mutex_);
      held.swap(held_);
    }
    for (auto& promise : held) promise.Set(7);
  }

  async::Mutex mutex_;
  async::CondVar changed_;
  std::vector<async::Promise<int64_t>> held_ ABSL_GUARDED_BY(mutex_);
  TestJob job_;
};

TEST_F(AgentLimitsTest, CallsBeyondTheLimitAreRefusedUntilOthersEnd) {
  Start({.max_calls_per_peer = 2});
  std::vector<async::Future<int64_t>> calls;
  calls.push_back(Hold());
  calls.push_back(Hold());
  AwaitHeld(2);
  const absl::StatusOr<int64_t> refused = Hold().Wait();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("max_calls_per_peer")));
  const auto detail = GetErrorDetail(refused.status());
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->worker, "w1");
  EXPECT_FALSE(detail->maybe_applied);
  ReleaseAll();
  for (auto& call : calls) EXPECT_THAT(call.Wait(), IsOk());
  // The one that ended last may be counted for a moment longer.
  async::Future<int64_t> again = Hold();
  while (true) {
    async::MutexLock lock(&mutex_);
    if (!held_.empty()) break;
    if (again.ready()) again = Hold();
  }
  ReleaseAll();
  EXPECT_THAT(again.Wait(), IsOk());
}

TEST_F(AgentLimitsTest, BytesOfRequestsAreLimited) {
  Start({.max_request_bytes_per_peer = 10'000});
  EXPECT_THAT(Hold(std::string(20'000, 'x')).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_request_bytes_per_peer")));
  // Counted until the arguments are read, not until the calls end.
  std::vector<async::Future<int64_t>> calls;
  for (size_t i = 1; i <= 3; ++i) {
    calls.push_back(Hold(std::string(6'000, 'x')));
    AwaitHeld(i);
  }
  ReleaseAll();
  for (auto& call : calls) EXPECT_THAT(call.Wait(), IsOk());
}

TEST_F(AgentLimitsTest, LimitsMustBePositive) {
  AgentOptions options = job_.Options(0, 1);
  options.limits.max_calls = 0;
  EXPECT_THAT(
      Agent::Start(std::move(options)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_calls")));
}

}  // namespace
}  // namespace hawser::rpc
