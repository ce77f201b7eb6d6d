#include "rpc/grpc/poller.h"

#include <atomic>
#include <memory>
#include <thread>

#include "async/cpu_relax.h"
#include "grpcpp/alarm.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using Polled = Poller::Polled;

// Comes at once after Start, over the queue.
class TestEvent final : public CompletionEvent {
 public:
  void Start(::grpc::CompletionQueue* queue) {
    handled_ = false;
    alarm_.Set(queue, gpr_now(GPR_CLOCK_MONOTONIC),
               static_cast<CompletionEvent*>(this));
  }
  void OnEvent(bool) override {
    thread_ = std::this_thread::get_id();
    handled_ = true;
  }

  bool handled() const { return handled_; }
  bool handled_here() const { return thread_ == std::this_thread::get_id(); }
  void Await() const {
    while (!handled_) async::CpuRelax();
  }

 private:
  ::grpc::Alarm alarm_;
  std::atomic<std::thread::id> thread_;
  std::atomic<bool> handled_{false};
};

class PollerTest : public testing::Test {
 protected:
  explicit PollerTest(int num_threads = 1)
      : poller_(std::make_unique<::grpc::CompletionQueue>(), num_threads,
                /*busy=*/false) {}

  Polled PollFor(const TestEvent& event) {
    return poller_.PollFor(&event, [&] { return !event.handled(); });
  }
  // As a thread does that makes a call and waits for it.
  void AwaitOne(TestEvent& event) {
    event.Start(poller_.queue());
    if (PollFor(event) == Polled::kHandled) return;
    poller_.set_awaited(&event);
    event.Await();
    poller_.set_awaited(nullptr);
  }
  // Until the polling thread has stepped aside.
  void AwaitMany(TestEvent& event) {
    do {
      AwaitOne(event);
    } while (!event.handled_here());
  }

  Poller poller_;
};

TEST_F(PollerTest, ThreadsHandleEventsThatNobodyAwaits) {
  TestEvent event;
  for (int i = 0; i < 100; ++i) {
    event.Start(poller_.queue());
    event.Await();
    EXPECT_FALSE(event.handled_here());
  }
}

TEST_F(PollerTest, WhoAwaitsEventsOneAfterTheOtherHandlesThem) {
  TestEvent event;
  AwaitMany(event);
}

TEST_F(PollerTest, PollingThreadReturnsIfNobodyPolls) {
  TestEvent event;
  AwaitMany(event);
  TestEvent other;
  other.Start(poller_.queue());
  other.Await();
  EXPECT_FALSE(other.handled_here());
}

TEST_F(PollerTest, EventsOfOthersAreNotHandledByWhoAwaits) {
  TestEvent event;
  TestEvent other;
  int num_handed_over = 0;
  while (num_handed_over < 20) {
    AwaitMany(event);
    other.Start(poller_.queue());
    event.Start(poller_.queue());
    const Polled polled = PollFor(event);
    if (polled == Polled::kHandled) {
      EXPECT_TRUE(event.handled_here());
    } else {
      // Perhaps since the other came first.
      ++num_handed_over;
    }
    event.Await();
    other.Await();
    EXPECT_FALSE(other.handled_here());
  }
}

TEST_F(PollerTest, GivesUpAfterAWhile) {
  TestEvent event;
  TestEvent never;
  Polled polled;
  do {
    AwaitMany(event);
    polled = PollFor(never);
  } while (polled == Polled::kByThreads);
  EXPECT_EQ(polled, Polled::kInVain);
  // The polling thread is back.
  event.Start(poller_.queue());
  event.Await();
  EXPECT_FALSE(event.handled_here());
}

TEST_F(PollerTest, ThreadThatIsAsideDoesNotKeepFromStopping) {
  TestEvent event;
  AwaitMany(event);
  poller_.Shutdown();
}

class SeveralThreadsTest : public PollerTest {
 protected:
  SeveralThreadsTest() : PollerTest(/*num_threads=*/2) {}
};

TEST_F(SeveralThreadsTest, DoNotStepAside) {
  TestEvent event;
  for (int i = 0; i < 200; ++i) {
    AwaitOne(event);
    EXPECT_FALSE(event.handled_here());
  }
}

}  // namespace
}  // namespace hawser::rpc
