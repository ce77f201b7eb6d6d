#include "rpc/agent/inbound/function_runner.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "async/blocking_region.h"
#include "async/clock.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/run_time.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/state/agent_state.h"
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
  void RunAfter(std::vector<async::Future<void>> prerequisites) {
    runner_.RunAfter(std::move(prerequisites), RunOn::Pool(),
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
  RunAfter({});
  EXPECT_EQ(result_, absl::OkStatus());
  EXPECT_EQ(executor_.num_queued(), 0u);
}

TEST_F(FunctionRunnerTest, ActionWaitsForAllPrerequisites) {
  async::Promise<void> first, second;
  RunAfter({first.future(), second.future()});
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
  RunAfter({first.future(), second.future()});
  second.Set(absl::DataLossError("second"));
  EXPECT_EQ(result_, std::nullopt);
  first.Set(absl::AbortedError("first"));
  EXPECT_EQ(result_, absl::DataLossError("second"));
}

TEST_F(FunctionRunnerTest, ActionIsDroppedIfTheAgentStops) {
  async::Promise<void> prerequisite, failed;
  RunAfter({prerequisite.future()});
  RunAfter({failed.future()});
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

// Work that may run on the agent's pool or in the thread of a transport.
class RunOrPostTest : public testing::Test {
 protected:
  using Thread = std::thread::id;

  // Runs `body` in a thread of a transport, inside the agent.
  void InTransport(absl::AnyInvocable<void() &&> body) {
    transport_.Post([this, body = std::move(body)]() mutable {
      const AgentState::InsideScope inside(state_.get());
      transport_thread_ = std::this_thread::get_id();
      std::move(body)();
    });
  }

  FunctionRunner::Work WorkWith(async::RunTime& run_time) const {
    return {.run_on = pool_option_, .run_time = run_time};
  }

  // Runs `work` from a thread of the transport and returns whether it ran
  // there.
  bool RunsInTransport(const FunctionRunner::Work& work) {
    std::latch ran(1);
    Thread thread;
    InTransport([&] {
      runner_.RunOrPost(work, [&] {
        thread = std::this_thread::get_id();
        ran.count_down();
      });
    });
    ran.wait();
    return thread == transport_thread_;
  }

  // Work that is expected to take `expected`.
  FunctionRunner::Work WorkOf(std::chrono::nanoseconds expected) {
    run_times_.emplace_back().Record(expected);
    return WorkWith(run_times_.back());
  }

  std::shared_ptr<AgentState> StateWith(const async::ThreadPool* pool) {
    return std::make_shared<AgentState>(
        AgentState::Options{.self = {},
                            .job = "job",
                            .clock = &clock_,
                            .executor = &pool_,
                            .control_executor = &pool_,
                            .pool = pool});
  }

  const RunOn pool_option_ = RunOn::Pool();
  // Outlive the threads.
  std::deque<async::RunTime> run_times_;
  async::RunTime run_time_;
  Thread transport_thread_;
  async::RealClock clock_;
  async::ThreadPool pool_{{.num_threads = 2, .max_threads = 8}};
  std::shared_ptr<AgentState> state_ = StateWith(&pool_);
  FunctionRunner runner_{state_};
  // Ends first.
  async::ThreadPool transport_{{.num_threads = 1, .max_threads = 16}};
};

TEST_F(RunOrPostTest, WorkOfUnknownLengthRunsOnThePool) {
  EXPECT_FALSE(RunsInTransport(WorkWith(run_time_)));
}

TEST_F(RunOrPostTest, ShortWorkRunsInTheTransport) {
  run_time_.Record(std::chrono::microseconds(2));
  EXPECT_TRUE(RunsInTransport(WorkWith(run_time_)));
}

TEST_F(RunOrPostTest, ShortWorkStaysIfMessagesWait) {
  run_time_.Record(std::chrono::microseconds(2));
  FunctionRunner::Work work = WorkWith(run_time_);
  work.more_waiting = true;
  EXPECT_TRUE(RunsInTransport(work));
}

TEST_F(RunOrPostTest, LongerWorkLeavesTheThreadToMessagesThatWait) {
  for (const bool more_waiting : {false, true}) {
    FunctionRunner::Work work = WorkOf(std::chrono::microseconds(40));
    work.more_waiting = more_waiting;
    EXPECT_EQ(RunsInTransport(work), !more_waiting);
  }
}

TEST_F(RunOrPostTest, LongWorkRunsOnThePool) {
  for (const int us : {900, 1100}) {
    EXPECT_EQ(RunsInTransport(WorkOf(std::chrono::microseconds(us))), us < 1000)
        << us;
  }
}

TEST_F(RunOrPostTest, LargeRequestsRunOnThePool) {
  for (const size_t bytes : {size_t{4} << 20, (size_t{4} << 20) + 1}) {
    FunctionRunner::Work work = WorkOf(std::chrono::microseconds(2));
    work.request_bytes = bytes;
    EXPECT_EQ(RunsInTransport(work), bytes == size_t{4} << 20);
  }
}

// The guard of short work would replace it only later.
TEST_F(RunOrPostTest, ThreadOfLongerWorkIsReplacedFromTheBeginning) {
  for (const auto& [us, bytes, replaced] :
       {std::tuple(40, size_t{256} << 10, false),
        std::tuple(40, (size_t{256} << 10) + 1, true),
        std::tuple(70, size_t{0}, false), std::tuple(90, size_t{0}, true)}) {
    FunctionRunner::Work work = WorkOf(std::chrono::microseconds(us));
    work.request_bytes = bytes;
    std::latch ran(1);
    int num_blocked = 0;
    InTransport([&] {
      runner_.RunOrPost(work, [&] {
        num_blocked = transport_.stats().num_blocked;
        ran.count_down();
      });
    });
    ran.wait();
    EXPECT_EQ(num_blocked, replaced ? 1 : 0) << us << " us, " << bytes;
  }
}

TEST_F(RunOrPostTest, OneThreadAtATimeDoesLongerWork) {
  const FunctionRunner::Work first = WorkOf(std::chrono::microseconds(200));
  const FunctionRunner::Work second = WorkOf(std::chrono::microseconds(200));
  std::latch second_ran(1), ended(1);
  InTransport([&] {
    runner_.RunOrPost(first, [&] {
      second_ran.wait();
      ended.count_down();
    });
  });
  // In the thread that replaces the first one.
  EXPECT_FALSE(RunsInTransport(second));
  second_ran.count_down();
  ended.wait();
  transport_.Shutdown();
}

TEST_F(RunOrPostTest, LongerWorkMayBeDoneInTheTransportAgain) {
  for (int i = 0; i < 3; ++i) {
    // The work before may not have ended yet.
    while (!RunsInTransport(WorkOf(std::chrono::microseconds(200)))) {
    }
  }
}

TEST_F(RunOrPostTest, WorkOfAQueueRunsOnTheQueue) {
  run_time_.Record(std::chrono::microseconds(2));
  const RunOn queue = RunOn::Queue("a");
  EXPECT_FALSE(RunsInTransport({.run_on = queue, .run_time = run_time_}));
}

TEST_F(RunOrPostTest, ThreadThatCannotBeReplacedHandsOver) {
  run_time_.Record(std::chrono::microseconds(2));
  const AgentState::InsideScope inside(state_.get());
  std::latch ran(1);
  Thread thread;
  runner_.RunOrPost(WorkWith(run_time_), [&] {
    thread = std::this_thread::get_id();
    ran.count_down();
  });
  ran.wait();
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST_F(RunOrPostTest, ThreadOutsideOfTheAgentHandsOver) {
  run_time_.Record(std::chrono::microseconds(2));
  std::latch ran(1);
  Thread caller, thread;
  transport_.Post([&] {
    caller = std::this_thread::get_id();
    runner_.RunOrPost(WorkWith(run_time_), [&] {
      thread = std::this_thread::get_id();
      ran.count_down();
    });
  });
  ran.wait();
  transport_.Shutdown();
  EXPECT_NE(thread, caller);
}

TEST_F(RunOrPostTest, ExecutorOfTheUserRunsAllWork) {
  run_time_.Record(std::chrono::microseconds(2));
  state_ = StateWith(nullptr);
  FunctionRunner runner(state_);
  std::latch ran(1);
  Thread thread;
  InTransport([&] {
    runner.RunOrPost(WorkWith(run_time_), [&] {
      thread = std::this_thread::get_id();
      ran.count_down();
    });
  });
  ran.wait();
  EXPECT_NE(thread, transport_thread_);
}

TEST_F(RunOrPostTest, ShortWorkStaysInAThreadOfThePool) {
  run_time_.Record(std::chrono::microseconds(2));
  std::latch ran(1);
  Thread caller, thread;
  pool_.Post([&] {
    const AgentState::InsideScope inside(state_.get());
    caller = std::this_thread::get_id();
    runner_.RunOrPost(WorkWith(run_time_), [&] {
      thread = std::this_thread::get_id();
      ran.count_down();
    });
  });
  ran.wait();
  EXPECT_EQ(thread, caller);
}

TEST_F(RunOrPostTest, RecordsTheRunTimeOnBothThreads) {
  // On the pool: nothing was expected.
  std::latch first(1);
  InTransport([&] {
    runner_.RunOrPost(WorkWith(run_time_), [&] { first.count_down(); });
  });
  first.wait();
  pool_.Shutdown();
  ASSERT_TRUE(run_time_.expected().has_value());

  async::RunTime& here = run_times_.emplace_back();
  here.Record(std::chrono::microseconds(2));
  InTransport([&] {
    runner_.RunOrPost(WorkWith(here), [] {
      const auto end =
          std::chrono::steady_clock::now() + std::chrono::microseconds(100);
      while (std::chrono::steady_clock::now() < end) {
      }
    });
  });
  transport_.Shutdown();
  EXPECT_GT(here.expected(), std::chrono::microseconds(2));
}

TEST_F(RunOrPostTest, WaitingIsNotRunTime) {
  run_time_.Record(std::chrono::microseconds(20));
  InTransport([&] {
    runner_.RunOrPost(WorkWith(run_time_), [] {
      const async::BlockingRegion region;
      const auto end =
          std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
      while (std::chrono::steady_clock::now() < end) {
      }
    });
  });
  transport_.Shutdown();
  EXPECT_LT(run_time_.expected(), std::chrono::microseconds(20));
}

// The work waits, without saying so, for a message that comes later.
TEST_F(RunOrPostTest, TransportGoesOnWhileWorkTakesLong) {
  run_time_.Record(std::chrono::microseconds(2));
  std::latch later(1), ended(1);
  InTransport([&] {
    runner_.RunOrPost(WorkWith(run_time_), [&] {
      later.wait();
      ended.count_down();
    });
  });
  InTransport([&] { later.count_down(); });
  ended.wait();
}

// Each message waits for the last one. After a few of them, no thread of the
// transport is held any more.
TEST_F(RunOrPostTest, WorkThatBecameLongMovesToThePool) {
  run_time_.Record(std::chrono::microseconds(2));
  constexpr int kMessages = 10;
  std::latch release(1);
  std::atomic<int> in_transport{0}, started{0};
  for (int i = 0; i < kMessages; ++i) {
    std::latch handled(1);
    InTransport([&] {
      const Thread self = std::this_thread::get_id();
      runner_.RunOrPost(WorkWith(run_time_), [&, self] {
        started.fetch_add(1);
        if (std::this_thread::get_id() == self) in_transport.fetch_add(1);
        release.wait();
      });
    });
    InTransport([&] { handled.count_down(); });
    handled.wait();
  }
  EXPECT_LE(in_transport.load(), 6);
  release.count_down();
  transport_.Shutdown();
  pool_.Shutdown();
  EXPECT_EQ(started.load(), kMessages);
}

}  // namespace
}  // namespace hawser::rpc
