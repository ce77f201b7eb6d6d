#include "rpc/inproc/network.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/errors/not_sent.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() {
    absl::StatusOr<std::string> address =
        server_->Listen("", {{.path = "/Echo",
                              .handler =
                                  [this](std::unique_ptr<IncomingCall> call) {
                                    ++num_calls_;
                                    call->Reply(call->TakeRequest());
                                  },
                              .hot = false},
                             {.path = "/Hold",
                              .handler =
                                  [this](std::unique_ptr<IncomingCall> call) {
                                    held_.push_back(std::move(call));
                                  },
                              .hot = false}});
    EXPECT_THAT(address, IsOk());
    address_ = *address;
    connection_ = *client_->Connect({address_});
  }

  // Makes a call; the result receives its outcome.
  std::shared_ptr<std::optional<absl::StatusOr<std::string>>> Call(
      const char* path, const std::string& request,
      async::MonotonicTime deadline = async::kNever) {
    auto outcome =
        std::make_shared<std::optional<absl::StatusOr<std::string>>>();
    last_id_ = connection_->Call(path, Payload(request), deadline,
                                 [outcome](absl::StatusOr<Payload> reply) {
                                   if (reply.ok()) {
                                     *outcome = reply->Flatten();
                                   } else {
                                     *outcome = reply.status();
                                   }
                                 });
    return outcome;
  }

  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  InprocNetwork network_{{.seed = 9, .executor = &executor_, .clock = &clock_}};
  int num_calls_ = 0;
  std::vector<std::unique_ptr<IncomingCall>> held_;
  std::unique_ptr<Transport> server_ = network_.NewTransport();
  std::unique_ptr<Transport> client_ = network_.NewTransport();
  std::string address_;
  std::shared_ptr<Connection> connection_;
  Connection::CallId last_id_ = 0;
};

TEST_F(NetworkTest, NothingRunsInTheCall) {
  auto outcome = Call("/Echo", "x");
  EXPECT_FALSE(outcome->has_value());
  EXPECT_EQ(num_calls_, 0);
  executor_.RunAll();
  EXPECT_THAT(**outcome, IsOkAndHolds("x"));
}

TEST_F(NetworkTest, ShutdownWaitsForACallbackThatRuns) {
  std::promise<void> running, returned;
  bool early = false;
  connection_->Call(
      "/Echo", Payload("x"), async::kNever, [&](absl::StatusOr<Payload>) {
        running.set_value();
        // Long enough for a Shutdown that does not wait to return.
        early =
            returned.get_future().wait_for(std::chrono::milliseconds(200)) ==
            std::future_status::ready;
      });
  std::thread runs_calls([&] { executor_.RunAll(); });
  running.get_future().wait();
  client_->Shutdown();
  returned.set_value();
  runs_calls.join();
  EXPECT_FALSE(early);
}

TEST_F(NetworkTest, DelaysAreDrawnFromTheRange) {
  network_.SetFaults({.min_delay = absl::Milliseconds(10),
                      .max_delay = absl::Milliseconds(20)});
  auto outcome = Call("/Echo", "x");
  clock_.AdvanceBy(absl::Milliseconds(9));
  executor_.RunAll();
  EXPECT_EQ(num_calls_, 0);
  clock_.AdvanceBy(absl::Milliseconds(11));
  executor_.RunAll();
  EXPECT_EQ(num_calls_, 1);
  EXPECT_FALSE(outcome->has_value());
  clock_.AdvanceBy(absl::Milliseconds(20));
  executor_.RunAll();
  EXPECT_TRUE(outcome->has_value());
}

TEST_F(NetworkTest, LostRequestEndsAtItsDeadline) {
  network_.SetFaults({.drop_request = 1});
  auto outcome =
      Call("/Echo", "x", async::AddDelay(clock_.Now(), absl::Seconds(1)));
  executor_.RunAll();
  EXPECT_FALSE(outcome->has_value());
  clock_.AdvanceBy(absl::Seconds(1));
  executor_.RunAll();
  ASSERT_TRUE(outcome->has_value());
  EXPECT_THAT(**outcome, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(num_calls_, 0);
}

TEST_F(NetworkTest, DuplicatesArriveTwiceAndGetOneReply) {
  network_.SetFaults({.duplicate_request = 1, .duplicate_reply = 1});
  auto outcome = Call("/Echo", "x");
  executor_.RunAll();
  EXPECT_EQ(num_calls_, 2);
  EXPECT_THAT(**outcome, IsOkAndHolds("x"));
}

TEST_F(NetworkTest, MethodsHaveFaultsOfTheirOwn) {
  network_.SetFaults({.drop_request = 1});
  network_.SetMethodFaults("/Echo", {});
  auto outcome = Call("/Echo", "x");
  executor_.RunAll();
  EXPECT_TRUE(outcome->has_value());
}

TEST_F(NetworkTest, BlockHoldsBackOneWay) {
  const absl::StatusOr<std::string> client = client_->Listen("", {});
  ASSERT_THAT(client, IsOk());
  network_.Block(*client, address_, true);
  Call("/Echo", "x");
  executor_.RunAll();
  EXPECT_EQ(num_calls_, 0);
  network_.Block(*client, address_, false);
  network_.Block(address_, *client, true);
  auto unanswered = Call("/Echo", "x");
  executor_.RunAll();
  EXPECT_EQ(num_calls_, 1);
  EXPECT_FALSE(unanswered->has_value());
  network_.Partition(*client, address_, false);
  auto answered = Call("/Echo", "x");
  executor_.RunAll();
  EXPECT_THAT(**answered, IsOkAndHolds("x"));
}

TEST_F(NetworkTest, CrashFailsCallsNowAndLater) {
  auto waiting = Call("/Hold", "x");
  executor_.RunAll();
  ASSERT_THAT(held_, SizeIs(1));
  network_.Crash(address_);
  auto later = Call("/Echo", "x");
  executor_.RunAll();
  EXPECT_THAT(**waiting, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(**later, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(held_[0]->cancellation()->cancelled());
}

TEST_F(NetworkTest, CancelNotifiesTheServer) {
  auto waiting = Call("/Hold", "x");
  executor_.RunAll();
  connection_->Cancel(last_id_);
  executor_.RunAll();
  EXPECT_THAT(**waiting, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(held_[0]->cancellation()->cancelled());
}

TEST_F(NetworkTest, DroppedCallGetsAReplyAndADiscardedOneDoesNot) {
  auto dropped = Call("/Hold", "x");
  auto discarded = Call("/Hold", "x");
  executor_.RunAll();
  ASSERT_THAT(held_, SizeIs(2));
  held_[1]->Discard();
  held_.clear();
  executor_.RunAll();
  EXPECT_THAT(**dropped, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(discarded->has_value());
}

TEST_F(NetworkTest, ShutdownEndsCallsOfBothSides) {
  auto waiting = Call("/Hold", "x");
  executor_.RunAll();
  client_->Shutdown();
  // Without running the executor.
  ASSERT_TRUE(waiting->has_value());
  EXPECT_THAT(**waiting, StatusIs(absl::StatusCode::kCancelled));
  auto later = Call("/Echo", "x");
  ASSERT_TRUE(later->has_value());
  EXPECT_THAT(**later, StatusIs(absl::StatusCode::kCancelled));
  server_->Shutdown();
  held_[0]->Reply(Payload("late"));
}

TEST_F(NetworkTest, CloseEndsOrRejectsConcurrentCalls) {
  constexpr int kRounds = 500;
  constexpr int kCalls = 20;
  std::atomic<int> begun{0}, ended{0};
  std::thread closes([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun < round) std::this_thread::yield();
      connection_->Close(absl::AbortedError("closed by the test"));
      executor_.RunAll();
      ended = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    connection_ = *client_->Connect({address_});
    std::vector<std::shared_ptr<std::optional<absl::StatusOr<std::string>>>>
        outcomes;
    begun = round;
    for (int i = 0; i < kCalls; ++i) outcomes.push_back(Call("/Echo", "x"));
    while (ended < round) std::this_thread::yield();
    executor_.RunAll();
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(outcome->has_value() &&
                  absl::IsAborted((*outcome)->status()));
    }
  }
  closes.join();
}

TEST_F(NetworkTest, UnknownMethodsAndAddressesAreErrors) {
  auto outcome = Call("/None", "");
  executor_.RunAll();
  EXPECT_THAT(**outcome, StatusIs(absl::StatusCode::kUnimplemented));
  connection_ = *client_->Connect({"inproc:99"});
  outcome = Call("/Echo", "x");
  executor_.RunAll();
  ASSERT_THAT(**outcome,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("inproc:99")));
  EXPECT_TRUE(IsNotSent((*outcome)->status()));
  EXPECT_THAT(client_->Connect({"127.0.0.1:5"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::rpc
