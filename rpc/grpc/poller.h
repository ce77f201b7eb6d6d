// Threads that wait on a completion queue.

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
#include "rpc/grpc/tuning/spin_policy.h"

namespace hawser::rpc {

// What is given to a completion queue as a tag.
class CompletionEvent {
 public:
  // Runs on a polling thread, or in Poller::PollFor. May block inside a
  // BlockingRegion.
  virtual void OnEvent(bool ok) = 0;

 protected:
  ~CompletionEvent() = default;
};

struct PollerOptions {
  // Where one of them blocks in an event, another takes its place.
  int num_threads = 1;
  // They never sleep.
  bool busy = false;
  // How long one of them looks for the next event before it sleeps: as long as
  // that was not in vain (SpinPolicy).
  absl::Duration spin;
};

// Polls a completion queue with threads of its own.
//
// A thread that makes one call after the other and waits for each would be
// woken by the polling thread each time. Where there is one of these, and all
// that comes is awaited in this way, it yields, and the thread that waits
// polls itself: PollFor. It comes back at the first event that is for someone
// else, or when for a moment nobody has polled.
//
// Thread-safe.
class Poller {
 public:
  Poller(std::unique_ptr<::grpc::CompletionQueue> queue, PollerOptions options);
  // Does Shutdown.
  ~Poller();

  ::grpc::CompletionQueue* queue() { return queue_.get(); }

  enum class Polled {
    // The event was handled in this thread.
    kHandled,
    // The polling threads have not yielded, or are back: they handle it.
    kByThreads,
    // It has not come for some milliseconds; the same.
    kInVain,
  };
  // For a thread that has nothing to do but wait for `event`: polls in place of
  // the polling threads, and handles no other event. `pending`: whether
  // `event` is still that event and has not been handled. `spin`: how long it
  // looks before it sleeps, as in PollerOptions. Not to be called once Shutdown
  // has begun.
  Polled PollFor(const CompletionEvent* event,
                 absl::FunctionRef<bool()> pending, absl::Duration spin);

  // What a thread waits for without polling, until it is set to null: tells the
  // polling threads when to yield.
  void set_awaited(const CompletionEvent* event) {
    awaited_.store(event, std::memory_order_relaxed);
  }

  // No operation may be begun on the queue any more. Returns when all events
  // have been handled. Idempotent.
  void Shutdown();

 private:
  struct Event {
    CompletionEvent* event = nullptr;
    bool ok = false;
  };

  using NextStatus = ::grpc::CompletionQueue::NextStatus;

  void Poll();
  // The next event; false if there will be none any more.
  bool Next(Event& event);
  // Looks for it until `end`, or for `spin` if `policy` advises so, without
  // sleeping.
  NextStatus SpinUntil(async::MonotonicTime end, Event& event);
  NextStatus Spin(absl::Duration spin, SpinPolicy& policy, Event& event);
  bool TakeHandedOver(Event& event);
  void Yield();

  const std::unique_ptr<::grpc::CompletionQueue> queue_;
  const PollerOptions options_;
  const bool may_yield_;
  SpinPolicy thread_spins_;
  SpinPolicy caller_spins_;
  std::atomic<const CompletionEvent*> awaited_{nullptr};
  // Awaited events in a row.
  std::atomic<int> streak_{0};

  async::Mutex mutex_;
  async::CondVar resumed_;
  int num_yielding_ ABSL_GUARDED_BY(mutex_) = 0;
  // Someone is in PollFor; someone was since a polling thread looked last.
  bool polling_ ABSL_GUARDED_BY(mutex_) = false;
  bool polled_ ABSL_GUARDED_BY(mutex_) = false;
  // The polling threads are to come back.
  bool resume_ ABSL_GUARDED_BY(mutex_) = false;
  // What came in PollFor for others.
  std::deque<Event> handed_over_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  async::ThreadPool threads_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_POLLER_H_
