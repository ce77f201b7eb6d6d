#include "rpc/agent/agent.h"

#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/errors/error_detail.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr Function<int64_t(int64_t, int64_t)> kAdd{"test.Add"};
constexpr Function<Tensor(Tensor, Tensor)> kFirst{"test.First"};
constexpr Function<void(std::string)> kFail{"test.Fail"};
constexpr Function<void()> kWait{"test.Wait"};
constexpr Function<int64_t(int64_t)> kCountDown{"test.CountDown"};
constexpr Function<std::string()> kWhoCalls{"test.WhoCalls"};

class AgentTest : public testing::TestWithParam<TransportParam> {
 protected:
  AgentTest() : job_(MakeTransportFactory(GetParam())) {
    EXPECT_THAT(job_.registry().Register(
                    kAdd, [](int64_t a, int64_t b) { return a + b; }),
                IsOk());
    EXPECT_THAT(
        job_.registry().Register(
            kWhoCalls, [] { return CurrentCall::Get()->caller().name; }),
        IsOk());
  }

  // kWait: sets `entered_`, and `cancelled_` when it is, and then returns.
  void RegisterWait() {
    EXPECT_THAT(job_.registry().Register(
                    kWait,
                    [this]() -> async::Future<void> {
                      async::Promise<void> promise;
                      async::Future<void> future = promise.future();
                      auto registration =
                          std::make_shared<Cancellation::Registration>();
                      *registration =
                          CurrentCall::Get()->cancellation().OnCancel(
                              [this, promise = std::move(promise)]() mutable {
                                cancelled_.Set(absl::OkStatus());
                                promise.Set(absl::CancelledError("seen"));
                              });
                      // Stands until then.
                      future.OnReady([registration](const absl::Status&) {});
                      entered_.Set(absl::OkStatus());
                      return future;
                    }),
                IsOk());
  }

  // Calls `function` of w1, which leads to kWait, with ever longer timeouts
  // until one has left it the time to begin.
  absl::Status CallUntilEntered(const Function<void()>& function) {
    absl::Duration timeout = absl::Milliseconds(200);
    absl::Status status;
    do {
      status = job_.agent(0).Sync("w1", {.timeout = timeout}, function);
      timeout *= 2;
    } while (absl::IsDeadlineExceeded(status) && !entered_.future().ready());
    return status;
  }

  async::Promise<void> entered_;
  async::Promise<void> cancelled_;
  // Ends first: its threads use what stands above.
  TestJob job_;
};

TEST_P(AgentTest, CallsByNameRankAndInfo) {
  job_.StartAll(2);
  Agent& agent = job_.agent(0);
  EXPECT_THAT(agent.Sync("w1", kAdd, 2, 3), IsOkAndHolds(5));
  EXPECT_THAT(agent.Sync(WorkerId(1), kAdd, 2, -3), IsOkAndHolds(-1));
  EXPECT_THAT(agent.Sync(job_.agent(1).info(), kAdd, 1, 1), IsOkAndHolds(2));
  EXPECT_THAT(agent.Async("w1", kAdd, 4, 5).Wait(), IsOkAndHolds(9));
}

TEST_P(AgentTest, CallsItself) {
  job_.StartAll(1);
  EXPECT_THAT(job_.agent(0).Sync("w0", kAdd, 2, 3), IsOkAndHolds(5));
  EXPECT_THAT(job_.agent(0).Sync("w0", kWhoCalls), IsOkAndHolds("w0"));
}

TEST_P(AgentTest, CalleeKnowsItsCaller) {
  job_.StartAll(2);
  EXPECT_THAT(job_.agent(1).Sync("w0", kWhoCalls), IsOkAndHolds("w1"));
  EXPECT_EQ(CurrentCall::Get(), nullptr);
}

TEST_P(AgentTest, TensorsTravelWithOneCopy) {
  ASSERT_THAT(job_.registry().Register(
                  kFirst, [](Tensor a, const Tensor&) { return a; }),
              IsOk());
  job_.StartAll(2);
  const Tensor a = Tensor::Arange(1 << 16);
  const Tensor b = Tensor::Ones({300, 7});
  absl::StatusOr<Tensor> result = job_.agent(0).Sync("w1", kFirst, a, b);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->ToVector<float>(), a.ToVector<float>());
  const uint64_t sent = a.byte_size() + b.byte_size();
  const TransferTotals caller = job_.agent(0).transfer_totals();
  const TransferTotals callee = job_.agent(1).transfer_totals();
  EXPECT_EQ(caller.tensor_bytes_sent, sent);
  EXPECT_EQ(caller.tensor_bytes_copied_to_send, 0u);
  EXPECT_EQ(callee.tensor_bytes_received, sent);
  EXPECT_EQ(callee.tensor_bytes_copied_to_receive, sent);
  EXPECT_EQ(callee.tensor_bytes_sent, static_cast<uint64_t>(a.byte_size()));
  EXPECT_EQ(callee.tensor_bytes_copied_to_send, 0u);
}

// Long enough for fragments, where the transport makes some.
TEST_P(AgentTest, LongTensorsTravelWithOneCopy) {
  ASSERT_THAT(job_.registry().Register(
                  kFirst, [](Tensor a, const Tensor&) { return a; }),
              IsOk());
  job_.StartAll(2);
  const Tensor a = Tensor::Arange(3 << 20);
  const Tensor b = Tensor::Ones({300, 7});
  absl::StatusOr<Tensor> result = job_.agent(0).Sync("w1", kFirst, a, b);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->ToVector<float>(), a.ToVector<float>());
  // The result is the callee's own, and so the caller's.
  result->data<float>()[0] = 7;
  EXPECT_EQ(a.ToVector<float>()[0], 0);
  const uint64_t sent = a.byte_size() + b.byte_size();
  EXPECT_EQ(job_.agent(0).transfer_totals().tensor_bytes_copied_to_send, 0u);
  EXPECT_EQ(job_.agent(1).transfer_totals().tensor_bytes_copied_to_receive,
            sent);
}

TEST_P(AgentTest, UnknownWorkerIsNotFound) {
  job_.StartAll(1);
  EXPECT_THAT(job_.agent(0).Sync("nobody", kAdd, 1, 2),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("'w0'"), HasSubstr("'nobody'"))));
  EXPECT_THAT(job_.agent(0).Sync(WorkerId(7), kAdd, 1, 2),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("7")));
}

TEST_P(AgentTest, UnknownFunctionIsUnimplemented) {
  job_.StartAll(2);
  constexpr Function<void()> kNone{"test.None"};
  EXPECT_THAT(job_.agent(0).Sync("w1", kNone),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("'test.None'"), HasSubstr("'w1'"))));
}

TEST_P(AgentTest, SignatureMismatchShowsBoth) {
  job_.StartAll(2);
  constexpr Function<double(int64_t)> kOther{"test.Add"};
  EXPECT_THAT(job_.agent(0).Sync("w1", kOther, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("double(int64)"),
                             HasSubstr("int64(int64, int64)"))));
}

TEST_P(AgentTest, FunctionErrorKeepsItsCodeAndNamesTheWorker) {
  ASSERT_THAT(job_.registry().Register(kFail,
                                       [](const std::string& message) {
                                         return absl::DataLossError(message);
                                       }),
              IsOk());
  job_.StartAll(2);
  const absl::Status sync = job_.agent(0).Sync("w1", kFail, "oh no");
  EXPECT_THAT(sync, StatusIs(absl::StatusCode::kDataLoss,
                             AllOf(HasSubstr("oh no"), HasSubstr("'w1'"))));
  const ErrorDetail detail{.worker = "w1",
                           .incarnation = job_.agent(1).info().incarnation,
                           .maybe_applied = false};
  EXPECT_THAT(GetErrorDetail(sync), Optional(detail));
  EXPECT_EQ(job_.agent(0).Async("w1", kFail, "oh no").Wait(), sync);
}

TEST_P(AgentTest, ErrorOfANestedCallNamesItsOrigin) {
  ASSERT_THAT(job_.registry().Register(
                  kFail,
                  [](const std::string& to) -> absl::Status {
                    if (to.empty()) return absl::DataLossError("deep");
                    return CurrentCall::Get()->agent().Sync(to, kFail, "");
                  }),
              IsOk());
  job_.StartAll(3);
  const absl::Status status = job_.agent(0).Sync("w1", kFail, "w2");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'w2'")));
  EXPECT_EQ(GetErrorDetail(status)->worker, "w2");
}

TEST_P(AgentTest, NegativeTimeoutIsInvalid) {
  job_.StartAll(1);
  EXPECT_THAT(
      job_.agent(0).Sync("w0", {.timeout = absl::Seconds(-1)}, kAdd, 1, 2),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(AgentTest, ZeroTimeoutHasPassed) {
  job_.StartAll(1);
  const absl::StatusOr<int64_t> result =
      job_.agent(0).Sync("w0", {.timeout = absl::ZeroDuration()}, kAdd, 1, 2);
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_FALSE(GetErrorDetail(result.status())->maybe_applied);
}

TEST_P(AgentTest, NoTimeoutIsAllowed) {
  job_.StartAll(1);
  EXPECT_THAT(job_.agent(0).Sync("w0", {.timeout = kNoTimeout}, kAdd, 1, 2),
              IsOkAndHolds(3));
}

TEST_P(AgentTest, DeadlineEndsTheCallAndReachesTheCallee) {
  RegisterWait();
  job_.StartAll(2);
  const absl::Status status = CallUntilEntered(kWait);
  ASSERT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               AllOf(HasSubstr("test.Wait"), HasSubstr("w1"))));
  EXPECT_TRUE(GetErrorDetail(status)->maybe_applied);
  EXPECT_THAT(cancelled_.future().Wait(), IsOk());
}

TEST_P(AgentTest, CancellingTheFutureReachesTheCallee) {
  RegisterWait();
  job_.StartAll(2);
  async::Future<void> future = job_.agent(0).Async("w1", kWait);
  EXPECT_THAT(entered_.future().Wait(), IsOk());
  EXPECT_TRUE(future.Cancel());
  EXPECT_THAT(cancelled_.future().Wait(), IsOk());
  EXPECT_THAT(future.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(AgentTest, NestedCallsInheritTheDeadline) {
  RegisterWait();
  constexpr Function<void()> kOuter{"test.Outer"};
  ASSERT_THAT(job_.registry().Register(
                  kOuter,
                  [] {
                    return CurrentCall::Get()->agent().Sync(
                        "w0", {.timeout = absl::Seconds(1000)}, kWait);
                  }),
              IsOk());
  job_.StartAll(2);
  ASSERT_THAT(CallUntilEntered(kOuter),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  // Long before the nested call's own timeout.
  EXPECT_THAT(cancelled_.future().Wait(), IsOk());
}

TEST_P(AgentTest, NestedBlockingCallsDoNotDeadlock) {
  ASSERT_THAT(job_.registry().Register(
                  kCountDown,
                  [](int64_t n) -> absl::StatusOr<int64_t> {
                    if (n == 0) return 0;
                    Agent& agent = CurrentCall::Get()->agent();
                    const char* other = agent.info().name == "w0" ? "w1" : "w0";
                    absl::StatusOr<int64_t> below =
                        agent.Sync(other, kCountDown, n - 1);
                    if (!below.ok()) return below;
                    return *below + 1;
                  }),
              IsOk());
  job_.StartAll(2, [](int, AgentOptions& options) { options.num_threads = 1; });
  std::vector<async::Future<int64_t>> futures;
  for (int i = 0; i < 8; ++i) {
    futures.push_back(job_.agent(i % 2).Async(WorkerId(i % 2), kCountDown, 20));
  }
  for (auto& future : futures) EXPECT_THAT(future.Wait(), IsOkAndHolds(20));
}

TEST_P(AgentTest, InlineFunctionsMayBlockToo) {
  ASSERT_THAT(
      job_.registry().Register(kCountDown,
                               [](int64_t n) -> absl::StatusOr<int64_t> {
                                 if (n == 0) return 0;
                                 return CurrentCall::Get()->agent().Sync(
                                     "w0", kCountDown, n - 1);
                               },
                               {.run_on = RunOn::Inline()}),
      IsOk());
  job_.StartAll(1);
  EXPECT_THAT(job_.agent(0).Sync("w0", kCountDown, 10), IsOkAndHolds(0));
}

TEST_P(AgentTest, BlockingInACallbackIsAllowed) {
  job_.StartAll(2);
  Agent& agent = job_.agent(0);
  std::vector<async::Future<int64_t>> futures;
  for (int i = 0; i < 20; ++i) {
    futures.push_back(
        agent.Async("w1", kAdd, i, 0).Then([&](absl::StatusOr<int64_t> sum) {
          return agent.Sync("w1", kAdd, *sum, 1);
        }));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(futures[i].Wait(), IsOkAndHolds(i + 1));
  }
}

TEST_P(AgentTest, QueueRunsItsFunctionsOneByOne) {
  constexpr Function<int64_t()> kStep{"test.Step"};
  int64_t unguarded = 0;
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  ASSERT_THAT(job_.registry().Register(kStep,
                                       [&] {
                                         if (inside.fetch_add(1) != 0)
                                           overlapped = true;
                                         const int64_t result = ++unguarded;
                                         inside.fetch_sub(1);
                                         return result;
                                       },
                                       {.run_on = RunOn::Queue("steps")}),
              IsOk());
  job_.StartAll(2);
  std::vector<async::Future<int64_t>> futures;
  for (int i = 0; i < 200; ++i) {
    futures.push_back(job_.agent(i % 2).Async("w0", kStep));
  }
  for (auto& future : futures) EXPECT_THAT(future.Wait(), IsOk());
  EXPECT_EQ(unguarded, 200);
  EXPECT_FALSE(overlapped);
}

TEST_P(AgentTest, AsyncFunctionFreesItsThread) {
  constexpr Function<int64_t()> kLater{"test.Later"};
  async::Mutex mutex;
  std::vector<async::Promise<int64_t>> waiting;
  absl::Notification all_waiting;
  ASSERT_THAT(job_.registry().Register(kLater,
                                       [&] {
                                         async::Promise<int64_t> promise;
                                         auto future = promise.future();
                                         async::MutexLock lock(&mutex);
                                         waiting.push_back(std::move(promise));
                                         if (waiting.size() == 50) {
                                           all_waiting.Notify();
                                         }
                                         return future;
                                       }),
              IsOk());
  job_.StartAll(2, [](int, AgentOptions& options) { options.num_threads = 1; });
  std::vector<async::Future<int64_t>> futures;
  for (int i = 0; i < 50; ++i) {
    futures.push_back(job_.agent(0).Async("w1", kLater));
  }
  all_waiting.WaitForNotification();
  {
    async::MutexLock lock(&mutex);
    for (auto& promise : waiting) promise.Set(7);
    waiting.clear();
  }
  for (auto& future : futures) EXPECT_THAT(future.Wait(), IsOkAndHolds(7));
}

TEST_P(AgentTest, ManyCallsFromManyThreads) {
  job_.StartAll(2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if (job_.agent(t % 2).Sync(WorkerId(1 - t % 2), kAdd, t, i) !=
            absl::StatusOr<int64_t>(t + i)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, AgentTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
