// The threads that look at shared memory.

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

namespace hawser::rpc {

// Polls sources while something happens, and for a bounded time after it; then
// sleeps until a descriptor is readable, above all its doorbell. A thread that
// blocks in what it runs is replaced meanwhile (async/thread_pool.h).
// Thread-safe.
class EventLoop {
 public:
  // What is polled.
  class Source {
   public:
    virtual ~Source() = default;

    // Handles a little of what came, if anything: true if so. Several threads
    // at once.
    virtual bool Poll() = 0;
    // Whether what came last was sent from the core that this thread runs on:
    // no more will come while it polls.
    virtual bool SenderWasHere() const = 0;
    // Around polling: threads are counted. True from EndPolling: nobody polls
    // now, and something came that nobody will ring for.
    virtual void BeginPolling() = 0;
    virtual bool EndPolling() = 0;
    // Does what is due, and says when to be called again at the latest.
    virtual async::MonotonicTime OnTime(async::MonotonicTime now) = 0;
  };

  struct Options {
    // How long a thread polls after the last event before it sleeps;
    // absl::InfiniteDuration() for ever.
    absl::Duration spin = absl::Microseconds(50);
  };

  // kResourceExhausted or kUnavailable: no descriptors.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(Options options);

  // Does Shutdown.
  ~EventLoop();

  // Polls `source` until Remove, which may be called while Poll runs, and does
  // not wait for it.
  void Add(std::shared_ptr<Source> source);
  void Remove(const Source* source);

  // Runs `on_ready` whenever `fd` is readable or hung up, one at a time, until
  // Unwatch. The loop does not own `fd`, which must be open until then.
  absl::Status Watch(int fd, std::function<void()> on_ready);
  // `on_ready` is not begun after it, unless it was due already.
  void Unwatch(int fd);

  // Runs `closure` soon, on a thread of the loop or in Shutdown.
  void Post(absl::AnyInvocable<void() &&> closure);

  // Some source's OnTime wants to be called by then. The loop keeps to it, also
  // if the source no longer does.
  void WakeBy(async::MonotonicTime time);
  // Wakes a thread that sleeps.
  void Wake();
  // Peers write to it (an eventfd) to do the same.
  int doorbell() const { return doorbell_.get(); }

  // For what sources copy. May outlive the loop.
  const std::shared_ptr<ParallelCopier>& copier() const { return copier_; }

  // Returns when nothing runs any more; so not from what it runs. Runs what was
  // posted before. Idempotent.
  void Shutdown();

 private:
  class Turn;
  using Sources = std::vector<std::shared_ptr<Source>>;

  EventLoop(Options options, UniqueFd doorbell, UniqueFd epoll);

  // A thread's turn.
  void Run();
  void Poll(Turn& turn);
  bool PollOnce(Turn& turn);
  // Runs one closure, if there is any: it may block, and others must not wait
  // for it.
  bool RunPosted();
  // What is due and what descriptors say; waits for either, or just looks.
  // False, and nothing was waited for: another thread sleeps already, and one
  // is enough.
  bool Attend(const Sources& sources, bool wait);
  std::shared_ptr<const Sources> sources();

  const Options options_;
  const UniqueFd doorbell_;
  const UniqueFd epoll_;
  const std::shared_ptr<ParallelCopier> copier_ =
      std::make_shared<ParallelCopier>();

  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> sources_version_{0};
  std::atomic<bool> posted_any_{false};
  // Whatever is due is seen to by the one thread that sleeps, or by one that is
  // awake and looks before it sleeps.
  Alarm alarm_;

  async::Mutex mutex_;
  std::shared_ptr<const Sources> sources_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::AnyInvocable<void() &&>> posted_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, std::shared_ptr<std::function<void()>>> watched_
      ABSL_GUARDED_BY(mutex_);

  async::ThreadPool threads_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_IPC_EVENT_LOOP_H_
