#include "async/long_run_guard.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "async/blocking_region.h"
#include "async/run_time.h"
#include "async/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::ElementsAre;

// Records the calls, and the thread of the last one.
class RecordingObserver final : public BlockingObserver {
 public:
  RecordingObserver() : before_(SetForThisThread(this)) {}
  ~RecordingObserver() override { SetForThisThread(before_); }

  void OnBlock() override {
    calls_.push_back("block");
    thread_ = std::this_thread::get_id();
    num_blocks_.fetch_add(1, std::memory_order_release);
  }
  void OnUnblock() override {
    calls_.push_back("unblock");
    thread_ = std::this_thread::get_id();
  }

  // Works, without a BlockingRegion, until a thread was replaced.
  void WorkUntilReplaced(int times = 1) const {
    while (num_blocks_.load(std::memory_order_acquire) < times) {
      std::this_thread::yield();
    }
  }
  const std::vector<std::string>& calls() const { return calls_; }
  bool called_here() const { return thread_ == std::this_thread::get_id(); }

 private:
  BlockingObserver* const before_;
  std::atomic<int> num_blocks_{0};
  std::vector<std::string> calls_;
  std::thread::id thread_;
};

TEST(LongRunGuardTest, ReplacesAThreadThatWorksLong) {
  RecordingObserver observer;
  {
    LongRunGuard guard(nullptr);
    observer.WorkUntilReplaced();
    EXPECT_FALSE(observer.called_here());
    EXPECT_THAT(observer.calls(), ElementsAre("block"));
  }
  EXPECT_TRUE(observer.called_here());
  EXPECT_THAT(observer.calls(), ElementsAre("block", "unblock"));
}

TEST(LongRunGuardTest, ReplacesTheSameThreadAgain) {
  RecordingObserver observer;
  for (int times = 1; times <= 20; ++times) {
    LongRunGuard guard(nullptr);
    observer.WorkUntilReplaced(times);
  }
  EXPECT_EQ(observer.calls().size(), 40);
}

TEST(LongRunGuardTest, WakesTheWatchingThread) {
  for (int times = 1; times <= 3; ++times) {
    RecordingObserver observer;
    // The watching thread sleeps after two looks without guards.
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(40);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    LongRunGuard guard(nullptr);
    observer.WorkUntilReplaced();
  }
}

TEST(LongRunGuardTest, ReplacesAThreadWhoseWorkIsExpectedToTakeLong) {
  RecordingObserver observer;
  {
    LongRunGuard guard(nullptr);
    guard.Replace();
    EXPECT_THAT(observer.calls(), ElementsAre("block"));
    // Once.
    guard.Replace();
    { BlockingRegion region; }
    EXPECT_THAT(observer.calls(), ElementsAre("block"));
  }
  EXPECT_THAT(observer.calls(), ElementsAre("block", "unblock"));
}

TEST(LongRunGuardTest, AThreadWithoutAnObserverIsNotReplaced) {
  ASSERT_EQ(BlockingObserver::OfThisThread(), nullptr);
  LongRunGuard guard(nullptr);
  guard.Replace();
  EXPECT_EQ(BlockingObserver::OfThisThread(), nullptr);
}

TEST(LongRunGuardTest, LeavesShortWorkAlone) {
  RecordingObserver observer;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  // Each takes far less than a millisecond; all together take longer.
  int longest = 0;
  while (std::chrono::steady_clock::now() < end) {
    const auto start = std::chrono::steady_clock::now();
    { LongRunGuard guard(nullptr); }
    if (std::chrono::steady_clock::now() - start >= LongRunGuard::kLimit) {
      ++longest;
    }
  }
  // The machine may have interrupted some.
  EXPECT_LE(observer.calls().size(), 2 * longest);
}

// How often the watching thread has slept, by the kernel.
int64_t NumSleeps() {
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "rpc-watch") continue;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      int64_t sleeps = 0;
      if (word == "voluntary_ctxt_switches:" && status >> sleeps) return sleeps;
    }
  }
  ADD_FAILURE() << "there is no watching thread";
  return 0;
}

// Each time that it wakes, it interrupts a thread of a busy machine.
TEST(LongRunGuardTest, TheWatchingThreadLooksRarelyWhileWorkIsShort) {
  RecordingObserver observer;
  { LongRunGuard guard(nullptr); }
  const int64_t before = NumSleeps();
  constexpr std::chrono::milliseconds kTime{400};
  const auto end = std::chrono::steady_clock::now() + kTime;
  while (std::chrono::steady_clock::now() < end) {
    // Works for a small part of the time.
    { LongRunGuard guard(nullptr); }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_LE(NumSleeps() - before, kTime / std::chrono::milliseconds(4));
}

TEST(LongRunGuardTest, ABlockingRegionTellsTheObserverAtOnce) {
  // A busy machine may interrupt the thread before the region.
  bool told = false;
  for (int attempt = 0; attempt < 1000 && !told; ++attempt) {
    RecordingObserver observer;
    LongRunGuard guard(nullptr);
    {
      BlockingRegion region;
      ASSERT_THAT(observer.calls(), ElementsAre("block"));
      told = observer.called_here();
    }
    if (told) {
      ASSERT_GE(observer.calls().size(), 2);
      EXPECT_EQ(observer.calls()[1], "unblock");
    }
  }
  EXPECT_TRUE(told);
}

TEST(LongRunGuardTest, WorkAfterABlockingRegionIsWatchedAgain) {
  RecordingObserver observer;
  {
    LongRunGuard guard(nullptr);
    { BlockingRegion region; }
    observer.WorkUntilReplaced(2);
  }
  EXPECT_THAT(observer.calls(),
              ElementsAre("block", "unblock", "block", "unblock"));
}

TEST(LongRunGuardTest, AReplacedThreadThatBlocksIsNotReplacedTwice) {
  RecordingObserver observer;
  {
    LongRunGuard guard(nullptr);
    observer.WorkUntilReplaced();
    BlockingRegion region;
  }
  EXPECT_THAT(observer.calls(), ElementsAre("block", "unblock"));
}

TEST(LongRunGuardTest, HasNoEffectWithoutAnObserver) {
  EXPECT_FALSE(LongRunGuard::CanReplaceThisThread());
  LongRunGuard guard(nullptr);
  EXPECT_FALSE(LongRunGuard::CanReplaceThisThread());
  EXPECT_EQ(BlockingObserver::OfThisThread(), nullptr);
}

TEST(LongRunGuardTest, HasNoEffectInsideAnother) {
  RecordingObserver observer;
  {
    LongRunGuard outer(nullptr);
    { LongRunGuard inner(nullptr); }
    EXPECT_TRUE(LongRunGuard::CanReplaceThisThread());
    observer.WorkUntilReplaced();
  }
  EXPECT_THAT(observer.calls(), ElementsAre("block", "unblock"));
}

TEST(LongRunGuardTest, RestoresTheObserver) {
  RecordingObserver observer;
  { LongRunGuard guard(nullptr); }
  EXPECT_EQ(BlockingObserver::OfThisThread(), &observer);
  EXPECT_TRUE(LongRunGuard::CanReplaceThisThread());
}

TEST(LongRunGuardTest, RecordsTheLimitWhileTheWorkGoesOn) {
  RecordingObserver observer;
  RunTime time;
  LongRunGuard guard(&time);
  observer.WorkUntilReplaced();
  EXPECT_EQ(time.expected(), LongRunGuard::kLimit);
}

TEST(LongRunGuardTest, RecordsNothingForShortWork) {
  RecordingObserver observer;
  RunTime time;
  { LongRunGuard guard(&time); }
  EXPECT_EQ(time.expected().has_value(), !observer.calls().empty());
}

// A closure of a pool with one thread waits, without saying so, for one that
// was posted after it.
TEST(LongRunGuardTest, APoolGoesOnWhileOneOfItsThreadsWorks) {
  ThreadPool pool({.num_threads = 1, .max_threads = 4});
  std::latch second_ran(1), first_ended(1);
  pool.Post([&] {
    {
      LongRunGuard guard(nullptr);
      second_ran.wait();
    }
    first_ended.count_down();
  });
  pool.Post([&] { second_ran.count_down(); });
  first_ended.wait();
  pool.Shutdown();
  EXPECT_EQ(pool.stats().num_blocked, 0);
}

TEST(LongRunGuardTest, ManyThreadsWorkAtOnce) {
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      RecordingObserver observer;
      for (int times = 1; times <= 5; ++times) {
        LongRunGuard guard(nullptr);
        observer.WorkUntilReplaced(times);
        for (int short_runs = 0; short_runs < 100; ++short_runs) {
          BlockingRegion region;
        }
      }
      EXPECT_EQ(observer.calls().size(), 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hawser::async
