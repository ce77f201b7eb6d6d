// Polling threads of a completion queue.

#ifndef HAWSER_RPC_GRPC_POLLER_H_
#define HAWSER_RPC_GRPC_POLLER_H_

#include <time.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/thread_pool.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "ipc/spin_policy.h"
#include "net/grpc/completion_event.h"

namespace hawser::rpc {

struct PollerOptions {
  // Number of polling threads. A thread that blocks in an event is replaced.
  int num_threads = 1;
  // Whether the threads poll without ever sleeping.
  bool busy = false;
  // How long a thread spins for the next event before it sleeps, subject to
  // SpinPolicy.
  absl::Duration spin;
};

// Polls a completion queue with threads of its own.
//
// If a thread makes calls one after the other and waits for each, the polling
// thread would have to wake it each time. Therefore a single polling thread
// yields if all events are awaited this way, and the waiting thread polls
// itself in PollFor. The polling thread resumes at the first event for another
// thread, or when no thread has polled for a moment.
//
// gRPC reads from a connection as long as its peer sends, in the thread that
// began: a peer that never pauses captures the thread. Relieve then adds
// another.
//
// Thread-safe.
class Poller {
 public:
  Poller(std::unique_ptr<::grpc::CompletionQueue> queue, PollerOptions options);
  // Calls Shutdown.
  ~Poller();

  ::grpc::CompletionQueue* queue() { return queue_.get(); }

  enum class Polled {
    // The event was handled in the calling thread.
    kHandled,
    // The polling threads have not yielded or have resumed; they handle the
    // events.
    kByThreads,
    // No event arrived for some milliseconds; the polling threads handle it.
    kInVain,
  };
  // For a thread that only waits for an event of `group`: polls in place of the
  // polling threads, and handles one event of the group and no other. `pending`
  // returns whether the thread still waits; then the address of the group is
  // not reused. `spin` is as in PollerOptions. Must not be called after
  // Shutdown has begun.
  Polled PollFor(const void* group, absl::FunctionRef<bool()> pending,
                 absl::Duration spin);

  // For a polling thread that waits, inside an event, for an event of `group`:
  // goes on polling until it has handled one, for some milliseconds. Handles
  // brief events of other groups. If work that is not brief arrives, or another
  // thread polls, returns kByThreads: the caller then waits in a
  // BlockingRegion, and another thread replaces it.
  Polled PollInEvent(const void* group, absl::FunctionRef<bool()> pending);
  // Whether the calling thread is in PollInEvent.
  bool PollsInEvent() const;

  // Sets the group of the events that a thread waits for without polling, or
  // null. Tells the polling threads when to yield.
  void set_awaited(const void* group) {
    awaited_.store(group, std::memory_order_relaxed);
    if (group != nullptr) {
      last_awaited_.store(group, std::memory_order_relaxed);
    }
  }
  // Whether the polling threads have yielded, so that a thread that waits for
  // an event should call PollFor.
  bool yielded() const { return yielded_.load(std::memory_order_relaxed); }
  // Says that an event is expected in `time` or later: a polling thread spins
  // for so long in addition before it sleeps. No effect if polling threads do
  // not spin.
  void ExpectEventAfter(absl::Duration time);
  // Says that an event was not only for the thread that awaits it.
  void EndStreak() { streak_.store(0, std::memory_order_relaxed); }

  // Whether the calling thread is a polling thread. It must not spin for an
  // event of the queue without polling, since it may be the only one that
  // polls.
  bool PollsInThisThread() const;

  // Number of polling threads that wait for an event without spinning.
  int num_waiting() const {
    return num_waiting_.load(std::memory_order_seq_cst);
  }

  // Runs `closure` once, on a polling thread or in Shutdown. It may block
  // inside a BlockingRegion. If it is `brief`, it may also run in PollInEvent:
  // it then must run no functions of users.
  void Post(absl::AnyInvocable<void() &&> closure, bool brief = false);

  // Adds a polling thread for each that gRPC has kept for itself for
  // kReliefInterval, up to kMaxRelief, until none was kept for kReliefTime. To
  // be called at least every 250 ms, by one thread. Returns the number of
  // threads that are wanted in addition.
  int Relieve(async::MonotonicTime now);
  static constexpr absl::Duration kReliefInterval = absl::Milliseconds(200);
  static constexpr int kMaxRelief = 8;
  static constexpr absl::Duration kReliefTime = absl::Seconds(10);

  // Shuts the queue down; no operation may be started on it any more. Returns
  // when all events have been handled and all closures have run. Idempotent.
  void Shutdown();

 private:
  struct Event {
    net::CompletionEvent* event = nullptr;
    bool ok = false;
  };

  class WakeEvent final : public net::CompletionEvent {
   public:
    explicit WakeEvent(Poller* poller) : poller_(*poller) {}
    void OnEvent(bool) override { poller_.OnWoken(); }
    bool brief() const override { return true; }

   private:
    Poller& poller_;
  };

  struct Posted {
    absl::AnyInvocable<void() &&> closure;
    bool brief = false;
  };

  // A polling thread.
  struct PollingThread {
    clockid_t processor_clock{};
    // Counts entries into gRPC, and returns from it: odd inside.
    std::atomic<uint64_t> passages{0};
    // As Relieve saw them last.
    uint64_t seen_passages = 0;
    absl::Duration seen_processor_time;
  };
  // Enters gRPC in the constructor and returns from it in the destructor.
  class InGrpc;
  // Makes the calling thread a polling thread.
  class ThreadScope;

  using NextStatus = ::grpc::CompletionQueue::NextStatus;

  void Poll();
  // Polls until a relief is not needed any more.
  void PollAsRelief();
  // Handles the next events, up to kEventsPerTurn; in a `relief`, until none is
  // needed. Returns false if the queue is shut down and drained.
  bool PollTurn(bool relief);
  // Whether gRPC has kept the thread since the last call of this.
  static bool IsCaptured(PollingThread& thread, absl::Duration since);
  // Waits for the next event, which is null if something was posted; returns
  // false if the queue is shut down and drained.
  // `spin_end`: when to end spinning; unset for a new period.
  bool Next(std::optional<async::MonotonicTime>& spin_end, Event& event);
  // Returns TIMEOUT if no event is waiting.
  NextStatus TryNext(Event& event);
  // Polls without sleeping until `end`; a polling thread, also for an event
  // that is expected.
  NextStatus SpinUntil(async::MonotonicTime end, Event& event);
  // Same, if `policy` allows it. An unset `end` is set to `spin` from now if no
  // event is waiting.
  NextStatus Spin(absl::Duration spin, ipc::SpinPolicy& policy,
                  std::optional<async::MonotonicTime>& end, Event& event);
  // Runs the closure posted first. Returns false if there is none, or only one
  // that is not brief, if it must be.
  bool RunPosted(bool brief_only = false);
  // Lets a polling thread handle an event before anything else.
  void PostEventLocked(const Event& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // At most `num_threads` threads have the role of polling, and those that
  // relieve captured ones. Returns false if others have it.
  bool TryBeginPolling();
  void EndPolling();
  // Waits until the role is free or something is posted.
  void Park();
  void OnWoken();
  void Yield();

  int max_polling() const {
    return options_.num_threads + num_relief_.load(std::memory_order_relaxed);
  }

  const std::unique_ptr<::grpc::CompletionQueue> queue_;
  const PollerOptions options_;
  const bool may_yield_;
  // Null outside of polling threads.
  static thread_local PollingThread* this_thread_;
  // When to end spinning for an event that is expected.
  std::atomic<async::MonotonicTime> poll_until_{async::MonotonicTime::min()};
  ipc::SpinPolicy thread_spins_;
  ipc::SpinPolicy caller_spins_;
  std::atomic<const void*> awaited_{nullptr};
  std::atomic<const void*> last_awaited_{nullptr};
  // Number of consecutive awaited events.
  std::atomic<int> streak_{0};

  async::Mutex mutex_;
  async::CondVar resumed_;
  int num_yielding_ ABSL_GUARDED_BY(mutex_) = 0;
  // Changes under the lock.
  std::atomic<bool> yielded_{false};
  // A thread is in PollFor; a thread was in PollFor since the last check.
  bool polling_ ABSL_GUARDED_BY(mutex_) = false;
  bool polled_ ABSL_GUARDED_BY(mutex_) = false;
  // Number of PollFor calls that polled, and that number at the last Relieve.
  uint64_t num_polls_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t seen_polls_ ABSL_GUARDED_BY(mutex_) = 0;
  // The polling threads must resume.
  bool resume_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Posted> posted_ ABSL_GUARDED_BY(mutex_);
  // Changes under the lock.
  std::atomic<bool> any_posted_{false};
  std::atomic<int> num_polling_{0};
  // Threads in Park. Changes under the lock.
  std::atomic<int> num_parked_{0};
  async::CondVar unparked_;
  // Polling threads that wait for an event.
  std::atomic<int> num_waiting_{0};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Ends the sleep of a polling thread.
  WakeEvent wake_event_{this};
  ::grpc::Alarm wake_alarm_ ABSL_GUARDED_BY(mutex_);
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;

  std::list<PollingThread*> polling_threads_ ABSL_GUARDED_BY(mutex_);
  // Threads wanted in addition. Changes in Relieve only.
  std::atomic<int> num_relief_{0};
  std::atomic<int> num_relieving_{0};
  async::MonotonicTime last_relieve_{};
  async::MonotonicTime relief_end_{};

  async::ThreadPool threads_;
  // Started by the first capture.
  async::ThreadPool relief_threads_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_POLLER_H_
