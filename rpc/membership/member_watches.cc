#include "rpc/membership/member_watches.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "async/serial_queue.h"
#include "rpc/transport/gate.h"

namespace hawser::rpc {

class MemberWatches::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(async::Executor* executor) : queue_(executor) {}

  MemberWatch Add(MemberCallback callback) {
    auto watcher = std::make_shared<Watcher>();
    watcher->callback = std::move(callback);
    async::MutexLock lock(&mutex_);
    const MemberWatch watch{++last_watch_};
    if (stopped_) return watch;
    watchers_.emplace(watch, watcher);
    // Under the lock, so that no event intervenes.
    for (const auto& [incarnation, worker] : members_) {
      Notify(watcher, {.kind = MemberEvent::Kind::kJoined, .worker = worker});
    }
    return watch;
  }

  void Remove(MemberWatch watch) {
    std::shared_ptr<Watcher> removed;
    {
      async::MutexLock lock(&mutex_);
      auto it = watchers_.find(watch);
      if (it == watchers_.end()) return;
      removed = it->second;
    }
    removed->gate.Close();
    // Removed only now, so that concurrent callers of Remove wait as well.
    async::MutexLock lock(&mutex_);
    watchers_.erase(watch);
  }

  void OnEvent(const MemberEvent& event) {
    async::MutexLock lock(&mutex_);
    if (event.kind == MemberEvent::Kind::kJoined) {
      members_.emplace(event.worker.incarnation, event.worker);
    } else if (members_.erase(event.worker.incarnation) == 0) {
      // It departed before this worker joined.
      return;
    }
    for (const auto& [watch, watcher] : watchers_) Notify(watcher, event);
  }

  void Stop() {
    std::map<MemberWatch, std::shared_ptr<Watcher>> watchers;
    {
      async::MutexLock lock(&mutex_);
      stopped_ = true;
      watchers = watchers_;
    }
    for (const auto& [watch, watcher] : watchers) watcher->gate.Close();
    // As in Remove; no watch is added later.
    async::MutexLock lock(&mutex_);
    watchers_.clear();
  }

 private:
  struct Watcher {
    MemberCallback callback;
    Gate gate;
  };

  void Notify(const std::shared_ptr<Watcher>& watcher, MemberEvent event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Posting does not run callbacks while the lock is held.
    queue_.Post([watcher, event = std::move(event)] {
      Gate::Entry entry(&watcher->gate);
      if (entry) watcher->callback(event);
    });
  }

  async::SerialQueue queue_;

  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_watch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<MemberWatch, std::shared_ptr<Watcher>> watchers_
      ABSL_GUARDED_BY(mutex_);
  std::map<Incarnation, WorkerInfo> members_ ABSL_GUARDED_BY(mutex_);
};

MemberWatches::MemberWatches(async::Executor* executor)
    : state_(std::make_shared<State>(executor)) {}
MemberWatches::~MemberWatches() { Stop(); }

MemberWatch MemberWatches::Add(MemberCallback callback) {
  return state_->Add(std::move(callback));
}
void MemberWatches::Remove(MemberWatch watch) { state_->Remove(watch); }
void MemberWatches::OnEvent(const MemberEvent& event) {
  state_->OnEvent(event);
}
void MemberWatches::Stop() { state_->Stop(); }

}  // namespace hawser::rpc
