#include "rpc/grpc/poller.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/clock.h"
#include "async/cpu_relax.h"
#include "async/long_run_guard.h"
#include "grpcpp/alarm.h"
#include "gtest/gtest.h"
#include "net/grpc/completion_event.h"

namespace hawser::rpc {
namespace {

using Polled = Poller::Polled;

// An event delivered through the queue, `delay` after Start.
class TestEvent final : public net::CompletionEvent {
 public:
  explicit TestEvent(bool brief = false) : brief_(brief) {}

  void Start(::grpc::CompletionQueue* queue, absl::Duration delay = {}) {
    handled_ = false;
    alarm_.Set(
        queue,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis(absl::ToInt64Milliseconds(delay),
                                          GPR_TIMESPAN)),
        static_cast<net::CompletionEvent*>(this));
  }
  void OnEvent(bool) override {
    thread_ = std::this_thread::get_id();
    handled_ = true;
    handled_.notify_all();
  }
  bool brief() const override { return brief_; }

  bool handled() const { return handled_; }
  bool handled_here() const { return thread_ == std::this_thread::get_id(); }
  void Await() const {
    while (!handled_) async::CpuRelax();
  }
  void AwaitAsleep() const { handled_.wait(false); }

 private:
  const bool brief_;
  ::grpc::Alarm alarm_;
  std::atomic<std::thread::id> thread_;
  std::atomic<bool> handled_{false};
};

// CPU time of all threads of this process.
absl::Duration CpuTime() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

// The parameter is the spin time of the threads.
class PollerTest : public testing::TestWithParam<absl::Duration> {
 protected:
  explicit PollerTest(int num_threads = 1)
      : poller_(std::make_unique<::grpc::CompletionQueue>(),
                {.num_threads = num_threads, .spin = GetParam()}) {}

  void AwaitWaitingThread() const {
    while (poller_.num_waiting() == 0) async::CpuRelax();
  }

  Polled PollFor(const TestEvent& event) {
    return poller_.PollFor(
        &event, [&] { return !event.handled(); }, GetParam());
  }
  // Waits for an event like a thread that made a blocking call.
  void AwaitOne(TestEvent& event) {
    event.Start(poller_.queue());
    if (PollFor(event) == Polled::kHandled) return;
    poller_.set_awaited(&event);
    event.Await();
    poller_.set_awaited(nullptr);
  }
  // Waits for events until the polling thread has yielded.
  void AwaitMany(TestEvent& event) {
    do {
      AwaitOne(event);
    } while (!event.handled_here());
  }

  Poller poller_;
};

TEST_P(PollerTest, ThreadsHandleEventsThatAreNotAwaited) {
  TestEvent event;
  for (int i = 0; i < 100; ++i) {
    event.Start(poller_.queue());
    event.Await();
    EXPECT_FALSE(event.handled_here());
  }
}

TEST_P(PollerTest, ThreadThatAwaitsConsecutiveEventsHandlesThem) {
  TestEvent event;
  AwaitMany(event);
}

TEST_P(PollerTest, KnowsItsPollingThreads) {
  EXPECT_FALSE(poller_.PollsInThisThread());
  Poller other(std::make_unique<::grpc::CompletionQueue>(), {});
  std::atomic<bool> ran = false;
  bool polls = false;
  bool polls_for_other = true;
  poller_.Post([&] {
    polls = poller_.PollsInThisThread();
    polls_for_other = other.PollsInThisThread();
    ran = true;
    ran.notify_all();
  });
  ran.wait(false);
  EXPECT_TRUE(polls);
  EXPECT_FALSE(polls_for_other);
}

TEST_P(PollerTest, PollingThreadResumesIfNoCallerPolls) {
  TestEvent event;
  AwaitMany(event);
  TestEvent other;
  other.Start(poller_.queue());
  other.Await();
  EXPECT_FALSE(other.handled_here());
}

TEST_P(PollerTest, CallerDoesNotHandleEventsOfOthers) {
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
      // The other event may have arrived first.
      ++num_handed_over;
    }
    event.Await();
    other.Await();
    EXPECT_FALSE(other.handled_here());
  }
}

TEST_P(PollerTest, SpinsLongerForAnEventThatIsExpected) {
  // Threads that do not spin would never wait again if this had an effect.
  const bool spins = GetParam() > absl::ZeroDuration();
  const absl::Duration time = spins ? absl::Milliseconds(50) : absl::Hours(1);
  TestEvent event;
  event.Start(poller_.queue());
  event.Await();
  AwaitWaitingThread();
  const auto begin = std::chrono::steady_clock::now();
  poller_.ExpectEventAfter(time);
  // The thread that handles it does not count as waiting any more.
  event.Start(poller_.queue());
  event.Await();
  AwaitWaitingThread();
  if (spins) {
    EXPECT_GE(async::TimeBetween(begin, std::chrono::steady_clock::now()),
              time);
  }
}

TEST_P(PollerTest, PollForTimesOut) {
  TestEvent event;
  TestEvent never;
  Polled polled;
  do {
    AwaitMany(event);
    polled = PollFor(never);
  } while (polled == Polled::kByThreads);
  EXPECT_EQ(polled, Polled::kInVain);
  // The polling thread has resumed.
  event.Start(poller_.queue());
  event.Await();
  EXPECT_FALSE(event.handled_here());
}

TEST_P(PollerTest, YieldedThreadDoesNotBlockShutdown) {
  TestEvent event;
  AwaitMany(event);
  poller_.Shutdown();
}

TEST_P(PollerTest, PostedClosuresRunOnAPollingThread) {
  TestEvent event;
  for (int i = 0; i < 200; ++i) {
    // From a thread of its own, while the polling thread spins, sleeps, or has
    // yielded.
    if (i % 3 == 0) AwaitMany(event);
    if (i % 50 == 0) AwaitWaitingThread();
    std::atomic<std::thread::id> thread;
    std::atomic<bool> ran = false;
    poller_.Post([&] {
      thread = std::this_thread::get_id();
      ran = true;
      ran.notify_all();
    });
    ran.wait(false);
    EXPECT_NE(thread.load(), std::this_thread::get_id());
  }
}

// A closure that blocks must not delay what it has posted before, although
// another polling thread is asleep by then.
TEST_P(PollerTest, ClosureMayWaitForClosuresThatItPosts) {
  std::atomic<bool> ended = false;
  poller_.Post([&] {
    for (int i = 0; i < 20; ++i) {
      std::atomic<bool> ran = false;
      poller_.Post([&ran] {
        ran = true;
        ran.notify_all();
      });
      {
        async::BlockingRegion blocking;
        ran.wait(false);
      }
      AwaitWaitingThread();
    }
    ended = true;
    ended.notify_all();
  });
  ended.wait(false);
}

TEST_P(PollerTest, ShutdownRunsPostedClosures) {
  std::atomic<int> num_run = 0;
  for (int i = 0; i < 100; ++i) {
    poller_.Post([&] {
      ++num_run;
      poller_.Post([&] { ++num_run; });
    });
  }
  poller_.Shutdown();
  EXPECT_EQ(num_run, 200);
}

TEST_P(PollerTest, SleepsWithoutEvents) {
  constexpr absl::Duration kQuiet = absl::Milliseconds(500);
  TestEvent event;
  AwaitMany(event);
  const absl::Duration before = CpuTime();
  event.Start(poller_.queue(), kQuiet);
  event.AwaitAsleep();
  EXPECT_LT(CpuTime() - before, kQuiet / 2);
}

// A thread that waits for events is not kept by gRPC.
TEST_P(PollerTest, ThreadThatWaitsNeedsNoRelief) {
  const async::MonotonicTime start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(
        poller_.Relieve(async::AddDelay(start, i * Poller::kReliefInterval)),
        0);
  }
}

class PollInEventTest : public PollerTest {
 protected:
  // Runs `work` in a polling thread, and waits for its end.
  template <class Work>
  void RunInEvent(Work work) {
    std::atomic<bool> ended = false;
    poller_.Post([&] {
      work();
      ended = true;
      ended.notify_all();
    });
    ended.wait(false);
  }

  // Polls until something arrives: a busy machine delivers an event late.
  Polled PollInEvent(const net::CompletionEvent& event) {
    Polled polled;
    do {
      polled = poller_.PollInEvent(&event, [] { return true; });
    } while (polled == Polled::kInVain);
    return polled;
  }
};

TEST_P(PollInEventTest, PollingThreadHandlesTheEventThatItAwaits) {
  RunInEvent([&] {
    EXPECT_FALSE(poller_.PollsInEvent());
    for (int i = 0; i < 20; ++i) {
      TestEvent event;
      event.Start(poller_.queue());
      EXPECT_EQ(PollInEvent(event), Polled::kHandled);
      EXPECT_TRUE(event.handled_here());
    }
  });
}

TEST_P(PollInEventTest, HandlesBriefEventsAndClosures) {
  RunInEvent([&] {
    TestEvent brief(/*brief=*/true);
    brief.Start(poller_.queue());
    bool in_event = false;
    poller_.Post([&] { in_event = poller_.PollsInEvent(); }, /*brief=*/true);
    TestEvent never;
    while (!brief.handled()) {
      EXPECT_NE(poller_.PollInEvent(&never, [&] { return !brief.handled(); }),
                Polled::kHandled);
    }
    EXPECT_TRUE(in_event);
    EXPECT_TRUE(brief.handled_here());
  });
}

TEST_P(PollInEventTest, LeavesOtherEventsToAThreadThatReplacesIt) {
  RunInEvent([&] {
    TestEvent other;
    other.Start(poller_.queue());
    TestEvent never;
    EXPECT_EQ(PollInEvent(never), Polled::kByThreads);
    EXPECT_FALSE(other.handled());
    {
      async::BlockingRegion blocking;
      other.AwaitAsleep();
    }
    EXPECT_FALSE(other.handled_here());
  });
}

TEST_P(PollInEventTest, LeavesOtherClosuresToAThreadThatReplacesIt) {
  RunInEvent([&] {
    std::atomic<std::thread::id> thread;
    std::atomic<bool> ran = false;
    poller_.Post([&] {
      thread = std::this_thread::get_id();
      ran = true;
      ran.notify_all();
    });
    TestEvent never;
    EXPECT_EQ(PollInEvent(never), Polled::kByThreads);
    EXPECT_FALSE(ran);
    {
      async::BlockingRegion blocking;
      ran.wait(false);
    }
    EXPECT_NE(thread.load(), std::this_thread::get_id());
  });
}

TEST_P(PollInEventTest, EndsWithoutAnEvent) {
  RunInEvent([&] {
    TestEvent never;
    EXPECT_EQ(poller_.PollInEvent(&never, [] { return true; }),
              Polled::kInVain);
    bool pending = true;
    poller_.Post([&] { pending = false; }, /*brief=*/true);
    EXPECT_EQ(poller_.PollInEvent(&never, [&] { return pending; }),
              Polled::kByThreads);
    EXPECT_FALSE(pending);
  });
}

// The event that a thread awaits may wait for others itself.
TEST_P(PollInEventTest, AwaitedEventMayBlock) {
  class BlockingEvent final : public net::CompletionEvent {
   public:
    BlockingEvent(Poller* poller, TestEvent* awaited)
        : poller_(*poller), awaited_(*awaited) {}
    void OnEvent(bool) override {
      awaited_.Start(poller_.queue());
      const async::BlockingRegion blocking;
      awaited_.AwaitAsleep();
    }

   private:
    Poller& poller_;
    TestEvent& awaited_;
  };
  RunInEvent([&] {
    TestEvent awaited;
    BlockingEvent event(&poller_, &awaited);
    ::grpc::Alarm alarm;
    alarm.Set(poller_.queue(), gpr_now(GPR_CLOCK_MONOTONIC),
              static_cast<net::CompletionEvent*>(&event));
    EXPECT_EQ(PollInEvent(event), Polled::kHandled);
    EXPECT_FALSE(awaited.handled_here());
  });
}

TEST_P(PollInEventTest, OneThreadPollsAtATime) {
  RunInEvent([&] {
    {
      async::BlockingRegion blocking;
      AwaitWaitingThread();
    }
    TestEvent event;
    event.Start(poller_.queue());
    EXPECT_EQ(PollInEvent(event), Polled::kByThreads);
    event.Await();
    EXPECT_FALSE(event.handled_here());
  });
  // It does not poll beside the other one from now on.
  TestEvent event;
  for (int i = 0; i < 100; ++i) {
    event.Start(poller_.queue());
    event.Await();
    EXPECT_LE(poller_.num_waiting(), 1);
  }
}

// The thread that replaces one which works long must not poll beside it, nor
// keep a processor busy.
TEST_P(PollInEventTest, ReplacingThreadRunsClosuresMeanwhile) {
  std::atomic<int> num_run = 0;
  std::atomic<bool> replaced = false;
  std::atomic<bool> ended = false;
  poller_.Post([&] {
    async::LongRunGuard guard(nullptr);
    guard.Replace();
    replaced = true;
    replaced.notify_all();
    TestEvent never;
    // A caller that is told to wait does so; one that polled again at once
    // could keep the lock from the thread that replaced it.
    int before = 0;
    while ((before = num_run) < 20) {
      if (PollInEvent(never) != Polled::kByThreads) continue;
      async::BlockingRegion region;
      while (num_run == before) async::CpuRelax();
    }
    ended = true;
    ended.notify_all();
  });
  replaced.wait(false);
  for (int i = 0; i < 20; ++i) {
    poller_.Post([&] { ++num_run; });
  }
  ended.wait(false);
  TestEvent event;
  event.Start(poller_.queue());
  event.Await();
}

INSTANTIATE_TEST_SUITE_P(Spins, PollInEventTest,
                         testing::Values(absl::ZeroDuration(),
                                         absl::Microseconds(50)));

INSTANTIATE_TEST_SUITE_P(Spins, PollerTest,
                         testing::Values(absl::ZeroDuration(),
                                         absl::Microseconds(50)));

class SeveralThreadsTest : public PollerTest {
 protected:
  SeveralThreadsTest() : PollerTest(/*num_threads=*/2) {}
};

TEST_P(SeveralThreadsTest, DoNotYield) {
  TestEvent event;
  for (int i = 0; i < 200; ++i) {
    AwaitOne(event);
    EXPECT_FALSE(event.handled_here());
  }
}

INSTANTIATE_TEST_SUITE_P(Spins, SeveralThreadsTest,
                         testing::Values(absl::ZeroDuration(),
                                         absl::Microseconds(50)));

}  // namespace
}  // namespace hawser::rpc
