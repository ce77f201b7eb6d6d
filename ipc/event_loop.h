// Event loop that polls shared memory and waits for descriptors.

#ifndef HAWSER_IPC_EVENT_LOOP_H_
#define HAWSER_IPC_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/thread_pool.h"
#include "fs/unique_fd.h"
#include "ipc/alarm.h"
#include "ipc/parallel_copier.h"
#include "ipc/spin_policy.h"

namespace hawser::ipc {

// Polls its sources while they deliver events and for a bounded time after the
// last one, then sleeps until its doorbell or another descriptor is readable. A
// thread that blocks in a callback is replaced meanwhile (async/thread_pool.h).
// Thread-safe.
class EventLoop {
 public:
  // An object to poll.
  class Source {
   public:
    virtual ~Source() = default;

    // Handles some of the pending events; returns true if there were any. May
    // run in several threads concurrently.
    virtual bool Poll() = 0;
    // Whether an event is pending.
    virtual bool HasEvent() = 0;
    // Whether the last event was sent from the core that this thread runs on,
    // so that no more can arrive while it polls.
    virtual bool PeerOnThisCore() const = 0;
    // Called before and after polling, to count the polling threads. EndPolling
    // returns true if no thread polls any more and an event arrived for which
    // the peer will not signal.
    virtual void BeginPolling() = 0;
    virtual bool EndPolling() = 0;
    // Handles passed deadlines and returns the time by which to call it again.
    virtual async::MonotonicTime OnTime(async::MonotonicTime now) = 0;
  };

  struct Options {
    // How long a thread polls after the last event before it sleeps. 0 disables
    // polling; absl::InfiniteDuration() never sleeps.
    absl::Duration spin = absl::Microseconds(50);
  };

  // kResourceExhausted or kUnavailable if no descriptors are left.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(Options options);

  // Calls Shutdown.
  ~EventLoop();

  // Polls `source` until Remove. Remove may be called while Poll runs and does
  // not wait for it.
  void Add(std::shared_ptr<Source> source);
  void Remove(const Source* source);

  // Runs `on_ready` whenever `fd` is readable or hung up, never concurrently
  // with itself, until Unwatch. Does not take ownership of `fd`, which must
  // stay open until then.
  absl::Status Watch(int fd, std::function<void()> on_ready);
  // After it returns, `on_ready` starts only if it was already scheduled.
  void Unwatch(int fd);

  // Runs `closure` on a thread of the loop or in Shutdown.
  void Post(absl::AnyInvocable<void() &&> closure);

  // Requests a call of the sources' OnTime by `time`. The loop wakes up then
  // even if the deadline is cancelled.
  void WakeBy(async::MonotonicTime time);
  // For a source that expects an event by `time`: a thread that polls does so
  // until then before it sleeps. No effect if polling is disabled.
  void PollUntil(async::MonotonicTime time);
  // Wakes the sleeping thread.
  void Wake();
  // For the work of a source that waits for an event of `source` and polls for
  // it: whether the calling thread is the one that has to handle events of
  // other sources too, and there are some. It should then block, so that
  // another thread replaces it.
  bool OthersNeedThisThread(const Source* source) const;
  // An eventfd that peers write to for the same purpose.
  int doorbell() const { return doorbell_.get(); }

  // For copies made by sources. May outlive the loop.
  const std::shared_ptr<ParallelCopier>& copier() const { return copier_; }

  // Runs the closures posted before and returns when no callback runs any more.
  // Must not be called from a callback of the loop. Idempotent.
  void Shutdown();

 private:
  class Turn;
  using Sources = std::vector<std::shared_ptr<Source>>;

  EventLoop(Options options, fs::UniqueFd doorbell, fs::UniqueFd epoll);

  // One turn of a thread.
  void Run();
  void Poll(Turn& turn);
  bool PollOnce(Turn& turn);
  // Runs at most one closure: it may block, and others must not wait for it.
  bool RunPosted();
  // Handles deadlines and descriptor events; with `wait`, waits for one.
  // Returns false without waiting if another thread already sleeps, since one
  // is enough.
  bool Attend(const Sources& sources, bool wait);
  std::shared_ptr<const Sources> sources();

  const Options options_;
  // Of the loop's threads.
  SpinPolicy spin_policy_;
  const fs::UniqueFd doorbell_;
  const fs::UniqueFd epoll_;
  const std::shared_ptr<ParallelCopier> copier_ =
      std::make_shared<ParallelCopier>();

  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> sources_version_{0};
  std::atomic<bool> posted_any_{false};
  // A source expects an event by then.
  std::atomic<async::MonotonicTime> poll_until_{async::MonotonicTime::min()};
  // Deadlines are handled by the sleeping thread, or by an awake thread, which
  // checks them before it sleeps.
  Alarm alarm_;

  async::Mutex mutex_;
  std::shared_ptr<const Sources> sources_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::AnyInvocable<void() &&>> posted_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, std::shared_ptr<std::function<void()>>> watched_
      ABSL_GUARDED_BY(mutex_);

  async::ThreadPool threads_;
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_EVENT_LOOP_H_
