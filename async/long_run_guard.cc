#include "async/long_run_guard.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/cpu_relax.h"
#include "async/mutex.h"

namespace hawser::async {
namespace {

// Between two looks of the watching thread if it sees no thread at work: each
// look interrupts a thread on a busy machine.
constexpr std::chrono::milliseconds kInterval{8};
// The watching thread sleeps after this many looks without a guard.
constexpr int kIdleLooks = 2;

// The guarded work of one thread.
class Work {
 public:
  Work();
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // --- In the thread that works.

  void Begin(BlockingObserver* observer, RunTime* run_time) {
    observer_ = observer;
    run_time_ = run_time;
    begun_ += kStep;
    // Before the caller reads whether the watching thread sleeps.
    state_.store(begun_ | kRunning, std::memory_order_seq_cst);
  }
  // Returns whether the thread was replaced.
  bool End() {
    uint64_t running = begun_ | kRunning;
    if (state_.compare_exchange_strong(running, begun_,
                                       std::memory_order_acq_rel)) {
      return false;
    }
    while (state_.load(std::memory_order_acquire) != (begun_ | kReplaced)) {
      CpuRelax();
    }
    state_.store(begun_, std::memory_order_relaxed);
    return true;
  }

  // --- In the watching thread.

  // Replaces the thread if its work has gone on since the last look. Returns
  // whether any work was done since then.
  bool Look() {
    uint64_t now = state_.load(std::memory_order_seq_cst);
    const uint64_t before = std::exchange(seen_, now);
    if (now != before) return true;
    if ((now & kStateMask) != kRunning) return false;
    const uint64_t begun = now & ~kStateMask;
    if (!state_.compare_exchange_strong(now, begun | kReplacing,
                                        std::memory_order_acq_rel)) {
      return true;
    }
    if (run_time_ != nullptr) run_time_->Record(LongRunGuard::kLimit);
    observer_->OnBlock();
    state_.store(begun | kReplaced, std::memory_order_release);
    return true;
  }
  bool running() const {
    return (state_.load(std::memory_order_seq_cst) & kStateMask) == kRunning;
  }

 private:
  static constexpr uint64_t kIdle = 0;
  static constexpr uint64_t kRunning = 1;
  static constexpr uint64_t kReplacing = 2;
  static constexpr uint64_t kReplaced = 3;
  static constexpr uint64_t kStateMask = 3;
  static constexpr uint64_t kStep = 4;

  // Read by the watching thread while the state is kReplacing, which keeps the
  // working thread in End.
  BlockingObserver* observer_ = nullptr;
  RunTime* run_time_ = nullptr;

  // Number of times that work began, in steps of kStep.
  uint64_t begun_ = 0;
  // `begun_` and the state.
  std::atomic<uint64_t> state_{kIdle};
  // What the watching thread saw last.
  uint64_t seen_ = 0;
};

class Watch {
 public:
  // Lives until the process ends, because threads may outlive static objects.
  static Watch& Get() {
    static Watch& watch = *new Watch;
    return watch;
  }

  void Add(Work* work) {
    MutexLock lock(&mutex_);
    works_.push_back(work);
    if (std::exchange(started_, true)) return;
    std::thread thread([this] { Run(); });
    pthread_setname_np(thread.native_handle(), "rpc-watch");
    thread.detach();
  }
  void Remove(Work* work) {
    MutexLock lock(&mutex_);
    works_.erase(std::find(works_.begin(), works_.end(), work));
  }

  // Called after work began.
  void WakeUp() {
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    MutexLock lock(&mutex_);
    asleep_.store(false, std::memory_order_relaxed);
    woken_.NotifyOne();
  }

 private:
  void Run() {
    MutexLock lock(&mutex_);
    int idle_looks = 0;
    std::chrono::milliseconds wait = LongRunGuard::kLimit;
    while (true) {
      woken_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + wait);
      bool any = false;
      bool runs = false;
      for (Work* work : works_) {
        any |= work->Look();
        runs |= work->running();
      }
      wait = runs ? LongRunGuard::kLimit : kInterval;
      idle_looks = any ? 0 : idle_looks + 1;
      if (idle_looks < kIdleLooks) continue;
      asleep_.store(true, std::memory_order_seq_cst);
      // Work that begins later sees that this thread sleeps.
      if (std::any_of(works_.begin(), works_.end(),
                      [](const Work* work) { return work->running(); })) {
        asleep_.store(false, std::memory_order_relaxed);
      }
      while (asleep_.load(std::memory_order_relaxed)) woken_.Wait(&mutex_);
      idle_looks = 0;
      wait = LongRunGuard::kLimit;
    }
  }

  Mutex mutex_;
  CondVar woken_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  // Changes under the lock.
  std::atomic<bool> asleep_{false};
  std::vector<Work*> works_ ABSL_GUARDED_BY(mutex_);
};

Work::Work() { Watch::Get().Add(this); }
Work::~Work() { Watch::Get().Remove(this); }

Work& ThisThread() {
  thread_local Work work;
  return work;
}

thread_local constinit bool t_guarded = false;

}  // namespace

bool LongRunGuard::CanReplaceThisThread() {
  return t_guarded || BlockingObserver::OfThisThread() != nullptr;
}

LongRunGuard::LongRunGuard(RunTime* run_time) : run_time_(run_time) {
  if (t_guarded || BlockingObserver::OfThisThread() == nullptr) return;
  t_guarded = true;
  observer_ = SetForThisThread(this);
  Begin();
}

LongRunGuard::~LongRunGuard() {
  if (observer_ == nullptr) return;
  if (!replaced_) replaced_ = ThisThread().End();
  if (replaced_) observer_->OnUnblock();
  SetForThisThread(observer_);
  t_guarded = false;
}

void LongRunGuard::Begin() {
  ThisThread().Begin(observer_, run_time_);
  Watch::Get().WakeUp();
}

void LongRunGuard::Replace() {
  if (observer_ == nullptr || replaced_) return;
  if (!ThisThread().End()) observer_->OnBlock();
  replaced_ = true;
}

// Once replaced, the thread counts as blocked until the guard ends.
void LongRunGuard::OnBlock() {
  if (replaced_) return;
  replaced_ = ThisThread().End();
  if (!replaced_) observer_->OnBlock();
}

void LongRunGuard::OnUnblock() {
  if (replaced_) return;
  observer_->OnUnblock();
  Begin();
}

}  // namespace hawser::async
