#include "rpc/agent/inbound/function_runner.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/run_on.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FunctionRunnerTest : public InboundTestFixture {
 protected:
  // Runs RunAfter with an action that sets result_.
  void RunAfter(std::vector<async::Future<void>> prerequisites, bool here) {
    runner_.RunAfter(std::move(prerequisites), RunOn::Pool(), here,
                     [this](absl::Status status) { result_ = status; });
  }

  // Invokes a function that adds 1 to 41.
  async::Future<ErasedValue> InvokeOn(RunOn run_on) {
    function_ = MakeFunction<int64_t, int64_t>("test.AddOne", "int64(int64)",
                                               [](int64_t n) { return n + 1; },
                                               {.run_on = std::move(run_on)});
    Encoder encoder;
    encoder.WriteInt(41);
    arguments_ = encoder.TakeValues();
    Decoder decoder(nullptr, nullptr, arguments_, {});
    if (prerequisite_.has_value()) {
      decoder.AddPrerequisite(prerequisite_->future());
    }
    return runner_.Invoke(*function_, decoder);
  }

  FunctionRunner runner_{state_};
  std::optional<absl::Status> result_;
  std::optional<async::Promise<void>> prerequisite_;
  std::unique_ptr<const RegisteredFunction> function_;
  std::string arguments_;
};

int64_t NumberOf(const ErasedValue& value) {
  return *static_cast<const int64_t*>(value.value.get());
}

TEST_F(FunctionRunnerTest, EachQueueNameIsOneSerialQueue) {
  async::Executor& a = runner_.ExecutorOf(RunOn::Queue("a"));
  EXPECT_EQ(&runner_.ExecutorOf(RunOn::Queue("a")), &a);
  EXPECT_NE(&runner_.ExecutorOf(RunOn::Queue("b")), &a);
  EXPECT_EQ(&runner_.ExecutorOf(RunOn::Pool()), &executor_);
  EXPECT_EQ(&runner_.ExecutorOf(RunOn::Inline()), &executor_);
  std::vector<std::string> steps;
  a.Post([&] {
    steps.push_back("a1 begins");
    // Other threads of the pool would run all that is ready now.
    executor_.RunAll();
    steps.push_back("a1 ends");
  });
  a.Post([&] { steps.push_back("a2"); });
  runner_.ExecutorOf(RunOn::Queue("b")).Post([&] { steps.push_back("b1"); });
  executor_.RunAll();
  EXPECT_THAT(steps, ElementsAre("a1 begins", "b1", "a1 ends", "a2"));
}

TEST_F(FunctionRunnerTest, ActionWithoutPrerequisitesRunsHere) {
  RunAfter({}, /*here=*/true);
  EXPECT_EQ(result_, absl::OkStatus());
  EXPECT_EQ(executor_.num_queued(), 0u);
}

TEST_F(FunctionRunnerTest, ActionRunsOnTheExecutorUnlessHere) {
  RunAfter({}, /*here=*/false);
  EXPECT_EQ(result_, std::nullopt);
  executor_.RunAll();
  EXPECT_EQ(result_, absl::OkStatus());
}

TEST_F(FunctionRunnerTest, ActionWaitsForAllPrerequisites) {
  async::Promise<void> first, second;
  RunAfter({first.future(), second.future()}, /*here=*/true);
  first.Set(absl::OkStatus());
  executor_.RunAll();
  EXPECT_EQ(result_, std::nullopt);
  second.Set(absl::OkStatus());
  // Not in the thread that completes the last one.
  EXPECT_EQ(result_, std::nullopt);
  executor_.RunAll();
  EXPECT_EQ(result_, absl::OkStatus());
}

TEST_F(FunctionRunnerTest, ActionGetsTheFirstErrorOfAPrerequisite) {
  async::Promise<void> first, second;
  RunAfter({first.future(), second.future()}, /*here=*/true);
  second.Set(absl::DataLossError("second"));
  EXPECT_EQ(result_, std::nullopt);
  first.Set(absl::AbortedError("first"));
  EXPECT_EQ(result_, absl::DataLossError("second"));
}

TEST_F(FunctionRunnerTest, ActionIsDroppedIfTheAgentStops) {
  async::Promise<void> prerequisite, failed;
  RunAfter({prerequisite.future()}, /*here=*/true);
  RunAfter({failed.future()}, /*here=*/true);
  RunAfter({}, /*here=*/false);
  state_->gate().Close();
  prerequisite.Set(absl::OkStatus());
  failed.Set(absl::AbortedError("failed"));
  executor_.RunAll();
  EXPECT_EQ(result_, std::nullopt);
}

TEST_F(FunctionRunnerTest, InlineFunctionRunsInTheInvokingThread) {
  const async::Future<ErasedValue> result = InvokeOn(RunOn::Inline());
  ASSERT_TRUE(result.ready());
  ASSERT_THAT(result.result(), IsOk());
  EXPECT_EQ(NumberOf(*result.result()), 42);
}

TEST_F(FunctionRunnerTest, OtherFunctionsRunOnTheirExecutors) {
  for (const RunOn& run_on : {RunOn::Pool(), RunOn::Queue("a")}) {
    const async::Future<ErasedValue> result = InvokeOn(run_on);
    EXPECT_FALSE(result.ready());
    executor_.RunAll();
    ASSERT_TRUE(result.ready());
    ASSERT_THAT(result.result(), IsOk());
    EXPECT_EQ(NumberOf(*result.result()), 42);
  }
}

TEST_F(FunctionRunnerTest, InvokedFunctionWaitsForItsArguments) {
  prerequisite_.emplace();
  const async::Future<ErasedValue> result = InvokeOn(RunOn::Inline());
  EXPECT_FALSE(result.ready());
  prerequisite_->Set(absl::OkStatus());
  executor_.RunAll();
  ASSERT_TRUE(result.ready());
  EXPECT_THAT(result.result(), IsOk());
}

TEST_F(FunctionRunnerTest, InvokedFunctionFailsWithItsArguments) {
  prerequisite_.emplace();
  const async::Future<ErasedValue> result = InvokeOn(RunOn::Inline());
  prerequisite_->Set(absl::AbortedError("the owner is lost"));
  ASSERT_TRUE(result.ready());
  EXPECT_THAT(result.result(), StatusIs(absl::StatusCode::kAborted,
                                        HasSubstr("the owner is lost")));
}

TEST_F(FunctionRunnerTest, ArgumentsOfAnotherTypeAreAnError) {
  const auto function = MakeFunction<void, std::string>(
      "test.F", "void(string)", [](const std::string&) {});
  Encoder encoder;
  encoder.WriteInt(1);
  const std::string values = encoder.TakeValues();
  Decoder decoder(nullptr, nullptr, values, {});
  const async::Future<ErasedValue> result = runner_.Invoke(*function, decoder);
  ASSERT_TRUE(result.ready());
  EXPECT_THAT(result.result(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FunctionRunnerTest, FunctionDoesNotRunOnTheLastThreadOfThePool) {
  EXPECT_THAT(FunctionRunner::CheckMayBlock(), IsOk());
  async::ThreadPool pool({.num_threads = 1, .max_threads = 2});
  async::Promise<void> promise;
  const async::Future<void> done = promise.future();
  absl::Status outcome;
  pool.Post([&] {
    // The other thread runs while this one waits.
    pool.Post([&] {
      EXPECT_THAT(FunctionRunner::CheckMayBlock(),
                  StatusIs(absl::StatusCode::kResourceExhausted,
                           HasSubstr("max_threads")));
      const async::Future<ErasedValue> result = InvokeOn(RunOn::Inline());
      // On another thread it could run, but not here.
      EXPECT_FALSE(result.ready());
      executor_.RunAll();
      if (result.ready()) outcome = result.result().status();
      promise.Set(absl::OkStatus());
    });
    (void)done.Wait();
  });
  EXPECT_THAT(done.Wait(), IsOk());
  pool.Shutdown();
  EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace hawser::rpc
