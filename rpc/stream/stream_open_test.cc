// Tests of streams that end while the call that opens them is being served.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "proto/stream.pb.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/call_observer.h"
#include "rpc/agent/service.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/loss_test_service.h"
#include "rpc/testing/raw_client.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

constexpr StreamFunction<int64_t()> kForOne{"stream_test.ForOne"};

// Runs a hook when a stream is about to be opened.
class OpenObserver final : public CallObserver {
 public:
  explicit OpenObserver(const std::function<void()>* on_open)
      : on_open_(*on_open) {}

  std::unique_ptr<Call> Begin(const CallStart& start) override {
    if (start.side == CallStart::Side::kServer &&
        start.method == "hawser.v1.StreamService.Open") {
      on_open_();
    }
    return nullptr;
  }

 private:
  const std::function<void()>& on_open_;
};

// The test sends the messages of the reader, which is a member.
class StreamOpenTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(address_, IsOk());
    ASSERT_THAT(RegisterStream(job_.registry(), kForOne,
                               [this](StreamWriter<int64_t>) {
                                 if (!started_.HasBeenNotified()) {
                                   started_.Notify();
                                 }
                                 return ended_.future();
                               },
                               {.allowed_roles = {"reader"}}),
                IsOk());
    job_.StartOne(0, [this](int, AgentOptions& options) {
      options.clock = &clock_;
      options.observers.push_back(std::make_shared<OpenObserver>(&on_open_));
      options.services.push_back(std::make_unique<StreamService>());
      options.services.push_back(std::make_unique<LossService>(&lost_));
    });
    reader_.address = *address_;
    WorkerDirectory directory(&job_.store(), AgentOptions().job);
    ASSERT_THAT(directory.Register(reader_, {}), IsOk());
  }

  // Stop the agents before the objects that they use are destroyed.
  void TearDown() override { job_.StopAll(); }

  absl::Status Open() {
    v1::StreamOpenRequest request;
    request.set_function(std::string(kForOne.name()));
    request.set_signature(kForOne.Signature());
    request.set_stream(1);
    request.set_window(1);
    return caller_
        .Call(reader_, job_.agent(0).info(), "/hawser.v1.StreamService/Open",
              request.SerializeAsString())
        .status();
  }

  int64_t NumOpen() {
    return job_.agent(0).service<StreamService>()->num_open();
  }

  // Set before Open.
  std::function<void()> on_open_;
  absl::Notification started_;
  absl::Notification lost_;
  async::Promise<void> ended_;
  async::SimulatedClock clock_;
  TestJob job_;
  std::unique_ptr<Transport> transport_ = job_.network().NewTransport();
  const absl::StatusOr<std::string> address_ = transport_->Listen("", {});
  RawClient caller_{std::move(transport_)};
  WorkerInfo reader_ = {.name = "reader",
                        .id = WorkerId(5),
                        .incarnation = Incarnation{1001},
                        .address = "",
                        .roles = {"reader"}};
};

TEST_F(StreamOpenTest, ConnectionThatBreaksMeanwhileEndsTheStream) {
  on_open_ = [this] {
    job_.network().Break(*address_, job_.agent(0).info().address);
  };
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kUnavailable));
  started_.WaitForNotification();
  EXPECT_EQ(NumOpen(), 0);
}

TEST_F(StreamOpenTest, ReaderLostMeanwhileLeavesNoStream) {
  on_open_ = [this] {
    MembershipLog log(&job_.store(), AgentOptions().job);
    EXPECT_THAT(log.Append(JoinedEvent(reader_)), IsOk());
    EXPECT_THAT(log.Append(LostEvent(reader_.incarnation, Incarnation{1002},
                                     "was not heard of")),
                IsOk());
    // The second event may arrive after a pause, which begins at any moment.
    while (!lost_.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
      clock_.AdvanceBy(AgentOptions().liveness.heartbeat_interval);
    }
  };
  EXPECT_THAT(Open(), IsOk());
  started_.WaitForNotification();
  EXPECT_EQ(NumOpen(), 0);
}

// Both opened their first stream.
TEST_F(StreamOpenTest, StreamOfARestartedReaderOutlivesItsPredecessor) {
  on_open_ = [] {};
  ASSERT_THAT(Open(), IsOk());
  const WorkerInfo predecessor = reader_;
  WorkerDirectory directory(&job_.store(), AgentOptions().job);
  ASSERT_THAT(directory.Withdraw(reader_), IsOk());
  reader_.incarnation = Incarnation{1003};
  ASSERT_THAT(directory.Register(reader_, {}), IsOk());
  ASSERT_THAT(Open(), IsOk());
  EXPECT_EQ(NumOpen(), 2);
  MembershipLog log(&job_.store(), AgentOptions().job);
  EXPECT_THAT(log.Append(JoinedEvent(predecessor)), IsOk());
  EXPECT_THAT(log.Append(LostEvent(predecessor.incarnation, Incarnation{1002},
                                   "was not heard of")),
              IsOk());
  while (!lost_.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
    // Not so far that the test, which sends no heartbeats, is lost as well.
    clock_.AdvanceBy(absl::Milliseconds(10));
  }
  EXPECT_EQ(NumOpen(), 1);
}

}  // namespace
}  // namespace hawser::rpc
