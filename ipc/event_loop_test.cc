#include "ipc/event_loop.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/cpu_relax.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

using ::hawser::async::IsOk;

class NothingComes : public EventLoop::Source {
 public:
  bool Poll() override { return false; }
  bool HasEvent() override { return false; }
  bool PeerOnThisCore() const override { return false; }
  void BeginPolling() override {}
  bool EndPolling() override { return false; }
};

// A source without events but with a deadline.
class Deadline final : public NothingComes {
 public:
  void Set(async::MonotonicTime due) {
    async::MutexLock lock(&mutex_);
    due_ = due;
  }
  // Returns false if the deadline was not handled in time.
  bool AwaitSeen() {
    const auto patience =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    async::MutexLock lock(&mutex_);
    while (due_ != async::kNever) {
      if (!changed_.WaitUntil(&mutex_, patience)) return false;
    }
    return true;
  }
  // Number of OnTime calls so far.
  int num_looks() {
    async::MutexLock lock(&mutex_);
    return num_looks_;
  }
  void AwaitLooks(int count) {
    async::MutexLock lock(&mutex_);
    while (num_looks_ < count) changed_.Wait(&mutex_);
  }

  async::MonotonicTime OnTime(async::MonotonicTime now) override {
    async::MutexLock lock(&mutex_);
    ++num_looks_;
    if (due_ <= now) due_ = async::kNever;
    changed_.NotifyAll();
    return due_;
  }

 private:
  async::Mutex mutex_;
  async::CondVar changed_;
  async::MonotonicTime due_ ABSL_GUARDED_BY(mutex_) = async::kNever;
  int num_looks_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Once armed, holds the first thread that checks until another checks for the
// second time, and holds that one until the first sleeps.
class SleepsBetweenLooks final : public NothingComes {
 public:
  void Arm() {
    async::MutexLock lock(&mutex_);
    armed_ = true;
  }
  void AwaitFirstLook() {
    async::MutexLock lock(&mutex_);
    AwaitLocked(1);
  }

  async::MonotonicTime OnTime(async::MonotonicTime) override {
    async::MutexLock lock(&mutex_);
    if (!armed_) return async::kNever;
    const int look = ++num_looks_;
    changed_.NotifyAll();
    if (look == 1) AwaitLocked(3);
    // A thread checks again before it sleeps.
    if (look == 3) AwaitLocked(4);
    return async::kNever;
  }

 private:
  void AwaitLocked(int count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (num_looks_ < count) changed_.Wait(&mutex_);
  }

  async::Mutex mutex_;
  async::CondVar changed_;
  bool armed_ ABSL_GUARDED_BY(mutex_) = false;
  int num_looks_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Has an event, which stays pending, if set.
class HasOrNot final : public NothingComes {
 public:
  void Set(bool has) { has_ = has; }
  bool HasEvent() override { return has_; }
  async::MonotonicTime OnTime(async::MonotonicTime) override {
    return async::kNever;
  }

 private:
  std::atomic<bool> has_ = false;
};

// Runs a closure in Poll, once.
class Works final : public NothingComes {
 public:
  explicit Works(std::function<void()> work) : work_(std::move(work)) {}
  bool Poll() override {
    if (std::exchange(done_, true)) return false;
    work_();
    return true;
  }
  async::MonotonicTime OnTime(async::MonotonicTime) override {
    return async::kNever;
  }

 private:
  const std::function<void()> work_;
  bool done_ = false;
};

TEST(EventLoopTest, WorkThatWaitsLearnsOfOtherEvents) {
  absl::StatusOr<std::unique_ptr<EventLoop>> loop =
      EventLoop::Create({.spin = absl::ZeroDuration()});
  ASSERT_THAT(loop, IsOk());
  auto first = std::make_shared<HasOrNot>();
  auto second = std::make_shared<HasOrNot>();
  (*loop)->Add(first);
  (*loop)->Add(second);
  async::Promise<void> done;
  const async::Future<void> worked = done.future();
  const auto others = [&] {
    return (*loop)->OthersNeedThisThread(first.get());
  };
  (*loop)->Add(std::make_shared<Works>([&] {
    first->Set(true);
    EXPECT_FALSE(others());
    second->Set(true);
    EXPECT_TRUE(others());
    second->Set(false);
    EXPECT_FALSE(others());
    (*loop)->Post([] {});
    EXPECT_TRUE(others());
    done.Set(absl::OkStatus());
  }));
  ASSERT_THAT(worked.Wait(), IsOk());
  // The loop's threads handle events for threads that are not its own.
  second->Set(true);
  EXPECT_FALSE(others());
  (*loop)->Shutdown();
}

// Counts polls, none of which finds an event.
class CountsPolls final : public NothingComes {
 public:
  bool Poll() override {
    num_polls_.fetch_add(1);
    return false;
  }
  async::MonotonicTime OnTime(async::MonotonicTime) override {
    return async::kNever;
  }
  int num_polls() const { return num_polls_.load(); }

 private:
  std::atomic<int> num_polls_ = 0;
};

TEST(EventLoopTest, PollsForAnExpectedEventInsteadOfSleeping) {
  auto loop = EventLoop::Create({.spin = absl::Microseconds(1)});
  ASSERT_THAT(loop, IsOk());
  const auto source = std::make_shared<CountsPolls>();
  (*loop)->Add(source);
  std::atomic<int> polls_before = -1;
  (*loop)->Post([&] {
    (*loop)->PollUntil(std::chrono::steady_clock::now() +
                       std::chrono::minutes(1));
    polls_before = source->num_polls();
  });
  const auto patience =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  // A thread that sleeps polls a few times before.
  while (polls_before < 0 || source->num_polls() < polls_before + 2000) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    async::CpuRelax();
  }
}

// A closure blocks and another thread replaces it. When the closure resumes
// there are two threads, and one of them ends its turn at an arbitrary moment.
TEST(EventLoopTest, DeadlinesAreHandledWhileOneOfTwoThreadsEnds) {
  absl::StatusOr<std::unique_ptr<EventLoop>> loop =
      EventLoop::Create({.spin = absl::ZeroDuration()});
  ASSERT_THAT(loop, IsOk());
  auto deadline = std::make_shared<Deadline>();
  (*loop)->Add(deadline);
  async::Promise<void> promise;
  const async::Future<void> released = promise.future();
  async::Promise<void> blocking;
  const async::Future<void> blocks = blocking.future();
  (*loop)->Post([&] {
    blocking.Set(absl::OkStatus());
    (void)released.Wait();
  });
  ASSERT_THAT(blocks.Wait(), IsOk());
  const int looks = deadline->num_looks();
  (*loop)->Wake();
  // A thread checks twice before it sleeps.
  deadline->AwaitLooks(looks + 2);
  promise.Set(absl::OkStatus());
  // More often than both threads sleep in one turn.
  for (int i = 0; i < 1000; ++i) {
    const async::MonotonicTime due = std::chrono::steady_clock::now();
    deadline->Set(due);
    (*loop)->WakeBy(due);
    ASSERT_TRUE(deadline->AwaitSeen()) << "deadline " << i;
  }
  (*loop)->Shutdown();
}

// A source is added while a thread is about to sleep. Another thread, which
// knows the source, consumes the doorbell signal and then finds the first
// thread asleep.
TEST(EventLoopTest, DeadlinesOfASourceUnknownToTheSleepingThreadAreHandled) {
  absl::StatusOr<std::unique_ptr<EventLoop>> loop =
      EventLoop::Create({.spin = absl::ZeroDuration()});
  ASSERT_THAT(loop, IsOk());
  auto sleeps = std::make_shared<SleepsBetweenLooks>();
  (*loop)->Add(sleeps);
  async::Promise<void> promise;
  const async::Future<void> released = promise.future();
  (*loop)->Post([&] {
    sleeps->Arm();
    (void)released.Wait();
    // After this time, a thread reads the doorbell before it tries to sleep.
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < until) async::CpuRelax();
  });
  sleeps->AwaitFirstLook();
  auto deadline = std::make_shared<Deadline>();
  (*loop)->Add(deadline);
  // Later than the threads' checks.
  const async::MonotonicTime due =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  deadline->Set(due);
  (*loop)->WakeBy(due);
  promise.Set(absl::OkStatus());
  EXPECT_TRUE(deadline->AwaitSeen());
  (*loop)->Shutdown();
}

}  // namespace
}  // namespace hawser::ipc
