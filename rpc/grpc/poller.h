// Polling threads of a completion queue.

#ifndef HAWSER_RPC_GRPC_POLLER_H_
#define HAWSER_RPC_GRPC_POLLER_H_

#include <atomic>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/thread_pool.h"
#include "grpcpp/completion_queue.h"
#include "ipc/spin_policy.h"

namespace hawser::rpc {

// The tag of an operation on a completion queue.
class CompletionEvent {
 public:
  // Runs on a polling thread or in Poller::PollFor. May block inside a
  // BlockingRegion.
  virtual void OnEvent(bool ok) = 0;

 protected:
  ~CompletionEvent() = default;
};

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
    // event.
    kByThreads,
    // The event did not arrive for some milliseconds; the polling threads
    // handle it.
    kInVain,
  };
  // For a thread that only waits for `event`: polls in place of the polling
  // threads and handles no other event. `pending` returns whether the event is
  // still unhandled and its address not reused. `spin` is as in PollerOptions.
  // Must not be called after Shutdown has begun.
  Polled PollFor(const CompletionEvent* event,
                 absl::FunctionRef<bool()> pending, absl::Duration spin);

  // Sets the event that a thread waits for without polling, or null. Tells the
  // polling threads when to yield.
  void set_awaited(const CompletionEvent* event) {
    awaited_.store(event, std::memory_order_relaxed);
  }

  // Shuts the queue down; no operation may be started on it any more. Returns
  // when all events have been handled. Idempotent.
  void Shutdown();

 private:
  struct Event {
    CompletionEvent* event = nullptr;
    bool ok = false;
  };

  using NextStatus = ::grpc::CompletionQueue::NextStatus;

  void Poll();
  // Waits for the next event; returns false if the queue is shut down and
  // drained.
  bool Next(Event& event);
  // Returns TIMEOUT if no event is waiting.
  NextStatus TryNext(Event& event);
  // Polls without sleeping until `end`, or for `spin` if `policy` allows it.
  NextStatus SpinUntil(async::MonotonicTime end, Event& event);
  NextStatus Spin(absl::Duration spin, ipc::SpinPolicy& policy, Event& event);
  bool TakeHandedOver(Event& event);
  void Yield();

  const std::unique_ptr<::grpc::CompletionQueue> queue_;
  const PollerOptions options_;
  const bool may_yield_;
  ipc::SpinPolicy thread_spins_;
  ipc::SpinPolicy caller_spins_;
  std::atomic<const CompletionEvent*> awaited_{nullptr};
  // Number of consecutive awaited events.
  std::atomic<int> streak_{0};

  async::Mutex mutex_;
  async::CondVar resumed_;
  int num_yielding_ ABSL_GUARDED_BY(mutex_) = 0;
  // A thread is in PollFor; a thread was in PollFor since the last check.
  bool polling_ ABSL_GUARDED_BY(mutex_) = false;
  bool polled_ ABSL_GUARDED_BY(mutex_) = false;
  // The polling threads must resume.
  bool resume_ ABSL_GUARDED_BY(mutex_) = false;
  // Events for other threads that arrived in PollFor.
  std::deque<Event> handed_over_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  async::ThreadPool threads_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_POLLER_H_
