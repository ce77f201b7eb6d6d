#include "ps/testing/history_checker.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/storage/consistency.h"

namespace hawser::ps {

void HistoryChecker::Fail(const std::string& text) {
  if (failure_.empty()) failure_ = text;
}

void HistoryChecker::Join(int worker, int64_t clock) {
  workers_[worker] = {.joined_at = ++now_,
                      .ended_at = std::nullopt,
                      .lost = false,
                      .clock = clock};
}

void HistoryChecker::Advance(int worker) {
  ++now_;
  ++workers_[worker].clock;
}

void HistoryChecker::Leave(int worker) {
  Worker& ended = workers_[worker];
  if (!ended.ended_at.has_value()) ended.ended_at = ++now_;
}

void HistoryChecker::Lose(int worker) {
  Leave(worker);
  workers_[worker].lost = true;
}

int64_t HistoryChecker::BeginPush(int worker,
                                  const std::vector<int64_t>& keys) {
  ++now_;
  Push push;
  push.worker = worker;
  push.clock = workers_[worker].clock;
  push.keys.insert(keys.begin(), keys.end());
  pushes_.push_back(push);
  return static_cast<int64_t>(pushes_.size()) - 1;
}

void HistoryChecker::EndPush(int64_t push, bool acknowledged) {
  ++now_;
  Push& ended = pushes_[static_cast<size_t>(push)];
  if (acknowledged) {
    ended.acknowledged_at = now_;
  } else {
    ended.failed = true;
  }
}

int64_t HistoryChecker::BeginPull(int worker) {
  pulls_.push_back({worker, workers_[worker].clock, ++now_});
  return static_cast<int64_t>(pulls_.size()) - 1;
}

bool HistoryChecker::MustCount(const Push& push) const {
  if (push.acknowledged_at.has_value()) return true;
  const Worker& worker = workers_.at(push.worker);
  if (push.failed || worker.lost) return false;
  // A worker that has left has not completed its last clock.
  return !worker.ended_at.has_value() || push.clock < worker.clock;
}

std::string HistoryChecker::MustSee(const Pull& pull, const Push& push) const {
  if (push.acknowledged_at.has_value() &&
      *push.acknowledged_at < pull.began_at) {
    return "it was acknowledged before";
  }
  if (!MustCount(push)) return "";
  if (push.worker == pull.worker && push.clock < pull.clock) {
    return "it is of the same worker";
  }
  if (push.clock < pull.clock - consistency_.bound &&
      workers_.at(push.worker).joined_at < pull.began_at) {
    return absl::StrCat("the staleness is at most ", consistency_.bound);
  }
  return "";
}

void HistoryChecker::CheckProgress(const std::string& name, const Pull& pull) {
  for (const auto& [id, worker] : workers_) {
    if (worker.ended_at.has_value() || worker.joined_at > pull.began_at ||
        worker.clock >= pull.clock - consistency_.bound) {
      continue;
    }
    Fail(absl::StrCat(name, " ended while worker ", id, " was at clock ",
                      worker.clock, ": the staleness is at most ",
                      consistency_.bound));
  }
}

void HistoryChecker::CheckCounts(const std::string& name, int64_t key,
                                 const Pushes& seen) {
  for (const auto& [push, times] : seen) {
    const std::string what =
        absl::StrCat(name, ": row ", key, " has push ", push);
    if (push < 0 || push >= static_cast<int64_t>(pushes_.size()) ||
        !pushes_[static_cast<size_t>(push)].keys.contains(key)) {
      Fail(absl::StrCat(what, ", which was not sent to it"));
    } else if (times != 1) {
      Fail(absl::StrCat(what, " ", times, " times"));
    }
  }
}

void HistoryChecker::CheckRow(const std::string& name, const Pull& pull,
                              int64_t key, const Pushes& seen) {
  CheckCounts(name, key, seen);
  if (!failure_.empty()) return;
  for (size_t i = 0; i < pushes_.size(); ++i) {
    const Push& push = pushes_[i];
    const auto id = static_cast<int64_t>(i);
    const std::string of = absl::StrCat(" push ", id, " of worker ",
                                        push.worker, " at clock ", push.clock);
    if (!push.keys.contains(key)) continue;
    if (seen.contains(id)) {
      if (consistency_.mode == Consistency::Mode::kSynchronous &&
          push.clock >= pull.clock) {
        Fail(absl::StrCat(name, ": row ", key, " has", of,
                          ", which is not complete"));
      }
      seen_[key].try_emplace(id, now_);
      continue;
    }
    std::string reason = MustSee(pull, push);
    const auto before = seen_[key].find(id);
    if (before != seen_[key].end() && before->second < pull.began_at) {
      reason = "an earlier pull saw it";
    }
    if (!reason.empty()) {
      Fail(absl::StrCat(name, ": row ", key, " misses", of, ": ", reason));
    }
  }
}

void HistoryChecker::EndPull(int64_t pull, const Rows& rows) {
  ++now_;
  const Pull& ended = pulls_[static_cast<size_t>(pull)];
  const std::string name = absl::StrCat(
      "pull ", pull, " of worker ", ended.worker, " at clock ", ended.clock);
  if (consistency_.clocked()) CheckProgress(name, ended);
  for (const auto& [key, seen] : rows) CheckRow(name, ended, key, seen);
}

void HistoryChecker::CheckEnd(const Rows& rows) {
  for (const auto& [key, seen] : rows) CheckCounts("the end", key, seen);
  for (size_t i = 0; i < pushes_.size(); ++i) {
    const Push& push = pushes_[i];
    const bool must_count =
        consistency_.mode == Consistency::Mode::kAsynchronous
            ? push.acknowledged_at.has_value()
            : MustCount(push);
    if (!must_count) continue;
    for (int64_t key : push.keys) {
      const auto row = rows.find(key);
      if (row != rows.end() && row->second.contains(static_cast<int64_t>(i))) {
        continue;
      }
      Fail(absl::StrCat("the end: row ", key, " misses push ", i, " of worker ",
                        push.worker, " at clock ", push.clock));
    }
  }
}

}  // namespace hawser::ps
