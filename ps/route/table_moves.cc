#include "ps/route/table_moves.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

TableMoves::TableMoves(rpc::ServiceHost& host, Watch watch)
    : host_(host), start_watch_(std::move(watch)) {}

void TableMoves::Add(const std::shared_ptr<TableFollower>& follower) {
  {
    const async::MutexLock lock(&mutex_);
    followers_.push_back({.follower = follower});
    if (lost_.empty()) return;
  }
  Schedule();
}

void TableMoves::OnRemoved() {
  if (watching_.load(std::memory_order_relaxed)) Schedule();
}

void TableMoves::OnWorkerLost(const std::string& worker) {
  {
    const async::MutexLock lock(&mutex_);
    lost_.insert(worker);
  }
  Schedule();
}

void TableMoves::OnReply() {
  if (!watching_.load(std::memory_order_relaxed)) return;
  {
    const rpc::HostHandle::Use host = host_.Acquire();
    if (!host) return;
    const async::MonotonicTime now = host->clock().Now();
    const async::MutexLock lock(&mutex_);
    if (now < next_reply_) return;
    next_reply_ = async::AddDelay(now, kReplyInterval);
  }
  Schedule();
}

void TableMoves::Stop() {
  async::Future<std::vector<RecordedTable>> watch;
  {
    const async::MutexLock lock(&mutex_);
    stopped_ = true;
    watch = std::exchange(watch_, {});
  }
  if (watch.valid()) watch.Cancel();
  host_.Revoke();
}

void TableMoves::Schedule() {
  const rpc::HostHandle::Use host = host_.Acquire();
  if (!host) return;
  {
    const async::MutexLock lock(&mutex_);
    if (stopped_ || scheduled_) return;
    scheduled_ = true;
  }
  host->executor().Post([self = shared_from_this()] { self->Update(); });
}

void TableMoves::Update() {
  async::Future<std::vector<RecordedTable>> replaced;
  Followers alive;
  {
    const rpc::HostHandle::Use host = host_.Acquire();
    if (!host) return;
    const async::MutexLock lock(&mutex_);
    scheduled_ = false;
    if (stopped_) return;
    ForgetReturned(*host);
    std::map<std::string, int64_t> wanted = VersionsToWatch(alive);
    if (wanted == watched_ && (wanted.empty() || !watch_.ready())) return;
    replaced = std::exchange(watch_, {});
    watched_ = std::move(wanted);
    watching_.store(!watched_.empty(), std::memory_order_relaxed);
    if (!watched_.empty()) StartWatch();
  }
  if (replaced.valid()) replaced.Cancel();
}

// Under the lock: a worker that is lost again later is added again later.
void TableMoves::ForgetReturned(rpc::ServiceHost& host) {
  if (lost_.empty()) return;
  for (const rpc::WorkerInfo& worker : host.workers()) {
    if (!host.IsLost(worker)) lost_.erase(worker.name);
  }
}

std::map<std::string, int64_t> TableMoves::VersionsToWatch(Followers& alive) {
  std::erase_if(followers_,
                [](const Entry& entry) { return entry.follower.expired(); });
  std::map<std::string, int64_t> versions;
  for (const Entry& entry : followers_) {
    const auto& follower = alive.emplace_back(entry.follower.lock());
    if (follower == nullptr) continue;
    const TableRoute route = follower->route();
    bool lost = false;
    for (const std::string& server : route.servers) {
      lost = lost || lost_.contains(server);
    }
    if (!lost) continue;
    const int64_t known = std::max(route.version, entry.told);
    const auto [version, added] =
        versions.try_emplace(follower->table(), known);
    if (!added) version->second = std::min(version->second, known);
  }
  return versions;
}

void TableMoves::StartWatch() {
  std::vector<TableVersion> tables;
  for (const auto& [table, version] : watched_) {
    tables.push_back({table, version});
  }
  watch_ = start_watch_(std::move(tables));
  async::Future<std::vector<RecordedTable>>(watch_).OnReady(
      [weak = weak_from_this()](
          const absl::StatusOr<std::vector<RecordedTable>>& records) {
        const std::shared_ptr<TableMoves> self = weak.lock();
        if (self == nullptr || !records.ok()) return;
        const rpc::HostHandle::Use host = self->host_.Acquire();
        if (!host) return;
        // Followers complete requests, whose callbacks may block, and must not
        // keep a thread of the store.
        host->executor().Post(
            [self, moved = *records] { self->OnMoved(moved); });
      });
}

void TableMoves::OnMoved(const std::vector<RecordedTable>& records) {
  for (const RecordedTable& record : records) {
    Followers alive;
    Followers moved;
    {
      const async::MutexLock lock(&mutex_);
      if (stopped_) return;
      for (Entry& entry : followers_) {
        const auto& follower = alive.emplace_back(entry.follower.lock());
        if (follower == nullptr || follower->table() != record.spec.name ||
            entry.told >= record.route.version) {
          continue;
        }
        entry.told = record.route.version;
        moved.push_back(follower);
      }
    }
    for (const auto& follower : moved) follower->OnTableMoved(record);
  }
  // The new servers may have been lost meanwhile.
  Schedule();
}

}  // namespace hawser::ps
