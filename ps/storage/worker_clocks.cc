#include "ps/storage/worker_clocks.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/check.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "proto/table_files.pb.h"
#include "ps/storage/consistency.h"
#include "ps/storage/push_window.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

// Workers that an error names.
constexpr size_t kMaxNamed = 3;
constexpr size_t kMaxNameLength = 256;

absl::Status NotJoined() {
  return absl::FailedPreconditionError(
      "the sender has not joined the table's clock, has left it, or was "
      "declared lost: join it with ps::WorkerClock");
}

}  // namespace

const WorkerClocks::Worker* WorkerClocks::Find(rpc::Incarnation worker,
                                               uint64_t join) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.left ||
      found->second.join != join) {
    return nullptr;
  }
  return &found->second;
}

absl::Status WorkerClocks::CheckAhead(const Worker& worker,
                                      int64_t clock) const {
  const int64_t base =
      synchronous() ? std::min(worker.clock, applied_) : worker.clock;
  if (clock <= base + kMaxAhead) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("'", worker.name, "' is at clock ", clock, ", more than ",
                   kMaxAhead, " clocks ahead of clock ", base,
                   synchronous() ? ", which is not complete"
                                 : ", of which pushes have not arrived"));
}

absl::StatusOr<bool> WorkerClocks::CheckJoin(
    const v1::ClockEvent& event) const {
  if (event.join() == 0 || event.num_workers() < 1 ||
      event.num_workers() > static_cast<int64_t>(kMaxWorkers) ||
      event.name().size() > kMaxNameLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("a join needs its number and 1 to ", kMaxWorkers,
                     " workers, not ", event.num_workers()));
  }
  const auto found = workers_.find(rpc::Incarnation{event.worker()});
  if (found == workers_.end() || found->second.join < event.join()) {
    if (workers_.size() >= kMaxWorkers || joined_.size() >= kMaxWorkers) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the table's clock has ", kMaxWorkers, " workers, its limit"));
    }
    if (event.clock() > completed_ + kMaxAhead) {
      return absl::InvalidArgumentError(
          absl::StrCat("a worker that joins at clock ", event.clock(),
                       ", far ahead of ", completed_));
    }
    return true;
  }
  const Worker& worker = found->second;
  if (worker.join > event.join() || worker.left) return NotJoined();
  RETURN_IF_ERROR(CheckAhead(worker, event.clock()));
  return event.clock() > worker.clock;
}

absl::StatusOr<bool> WorkerClocks::Check(const v1::ClockEvent& event) const {
  if (event.clock() < 0 || event.clock() > kMaxClock ||
      event.num_pushes() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "clock ", event.clock(), " with ", event.num_pushes(), " pushes"));
  }
  const async::MutexLock lock(&mutex_);
  if (event.kind() == v1::ClockEvent::JOIN) return CheckJoin(event);
  const rpc::Incarnation id{event.worker()};
  if (event.kind() == v1::ClockEvent::LOST) return workers_.contains(id);
  const Worker* const worker = Find(id, event.join());
  switch (event.kind()) {
    case v1::ClockEvent::ADVANCE: {
      if (worker == nullptr) return NotJoined();
      if (event.clock() <= worker->clock) return false;
      RETURN_IF_ERROR(CheckAhead(*worker, event.clock()));
      const auto step = worker->steps.find(event.clock() - 1);
      return step == worker->steps.end() || !step->second.announced.has_value();
    }
    case v1::ClockEvent::LEAVE:
      return worker != nullptr && !worker->leaves_at.has_value();
    case v1::ClockEvent::ABANDON:
      return worker != nullptr;
    default:
      return absl::InvalidArgumentError("an unknown event");
  }
}

void WorkerClocks::Join(const v1::ClockEvent& event) {
  const rpc::Incarnation id{event.worker()};
  Worker& worker = workers_[id];
  int64_t begin = worker.clock;
  if (worker.join < event.join()) {
    if (worker.join != 0 && !worker.left) Depart(id, worker);
    worker.join = event.join();
    worker.name = event.name();
    worker.left = false;
    worker.leaves_at.reset();
    worker.steps.clear();
    worker.clock = std::max(event.clock(), completed_);
    begin = applied_;
  } else {
    worker.clock = event.clock();
  }
  // The clocks before have no pushes of this membership.
  for (int64_t clock = begin; synchronous() && clock < worker.clock; ++clock) {
    worker.steps[clock].announced = 0;
  }
  if (begun_) return;
  num_expected_ = std::max(num_expected_, event.num_workers());
  joined_.insert(worker.name);
  begun_ = static_cast<int64_t>(joined_.size()) >= num_expected_;
  if (begun_) joined_.clear();
}

void WorkerClocks::Depart(rpc::Incarnation id, const Worker& worker) {
  highest_left_ = std::max(highest_left_, worker.clock);
  if (synchronous() && worker.clock > applied_) {
    departed_[{id, worker.join}] = worker.clock;
  }
}

void WorkerClocks::Apply(const v1::ClockEvent& event) {
  const async::MutexLock lock(&mutex_);
  const rpc::Incarnation id{event.worker()};
  if (event.kind() == v1::ClockEvent::JOIN) {
    Join(event);
    Complete();
    return;
  }
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  switch (event.kind()) {
    case v1::ClockEvent::ADVANCE:
      worker.steps[event.clock() - 1].announced = event.num_pushes();
      break;
    case v1::ClockEvent::LEAVE:
      worker.leaves_at = event.clock();
      break;
    case v1::ClockEvent::ABANDON:
      worker.leaves_at = worker.clock;
      break;
    default:
      if (!worker.left) Depart(id, worker);
      workers_.erase(found);
      Complete();
      return;
  }
  Advance(id, worker);
}

void WorkerClocks::Advance(rpc::Incarnation id, Worker& worker) {
  while (true) {
    const auto step = worker.steps.find(worker.clock);
    if (step == worker.steps.end() || !step->second.announced.has_value() ||
        step->second.arrived < *step->second.announced) {
      break;
    }
    ++worker.clock;
    if (!synchronous()) worker.steps.erase(step);
  }
  if (!worker.left && worker.leaves_at.has_value() &&
      worker.clock >= *worker.leaves_at) {
    worker.left = true;
    Depart(id, worker);
  }
  Complete();
}

void WorkerClocks::Complete() {
  if (!begun_) return;
  std::optional<int64_t> slowest;
  for (const auto& [id, worker] : workers_) {
    if (worker.left) continue;
    slowest = std::min(slowest.value_or(worker.clock), worker.clock);
  }
  completed_ = std::max(completed_, slowest.value_or(highest_left_));
  if (!synchronous()) applied_ = completed_;
}

absl::StatusOr<WorkerClocks::PushState> WorkerClocks::FindPush(
    const PushId& push, WorkerTime time) const {
  const async::MutexLock lock(&mutex_);
  const auto found = workers_.find(push.client);
  if (found == workers_.end()) return NotJoined();
  const Worker& worker = found->second;
  const PushWindow::State state = worker.applied.Find(push.sequence);
  if (state == PushWindow::State::kApplied) return PushState::kApplied;
  if (state == PushWindow::State::kTooOld) {
    return absl::FailedPreconditionError(absl::StrCat(
        "push ", push.sequence, " was overtaken by ", PushWindow::kDepth,
        " later ones: whether it was applied is not known any more"));
  }
  if (worker.arrived.Find(push.sequence) == PushWindow::State::kApplied) {
    return PushState::kArrived;
  }
  if (worker.left || worker.join != time.join) return NotJoined();
  if (time.clock < worker.clock) {
    return absl::InvalidArgumentError(absl::StrCat(
        "push ", push.sequence, " of clock ", time.clock, ", of which '",
        worker.name, "' has said that all pushes were sent"));
  }
  RETURN_IF_ERROR(CheckAhead(worker, time.clock));
  return PushState::kNew;
}

void WorkerClocks::PushArrived(const PushId& push, WorkerTime time) {
  const async::MutexLock lock(&mutex_);
  const auto found = workers_.find(push.client);
  if (found == workers_.end() || found->second.join != time.join) return;
  Worker& worker = found->second;
  if (worker.arrived.Find(push.sequence) != PushWindow::State::kNew) return;
  worker.arrived.Add(push.sequence);
  ++worker.steps[time.clock].arrived;
  Advance(push.client, worker);
}

void WorkerClocks::PushApplied(const PushId& push, WorkerTime time) {
  {
    const async::MutexLock lock(&mutex_);
    const auto found = workers_.find(push.client);
    if (found == workers_.end()) return;
    Worker& worker = found->second;
    if (worker.applied.Find(push.sequence) != PushWindow::State::kNew) return;
    worker.applied.Add(push.sequence);
    if (synchronous() && worker.join == time.join && time.clock >= applied_) {
      ++worker.steps[time.clock].applied;
    }
  }
  PushArrived(push, time);
}

bool WorkerClocks::Counts(rpc::Incarnation worker, WorkerTime time) const {
  const async::MutexLock lock(&mutex_);
  if (Find(worker, time.join) != nullptr) return true;
  const auto departed = departed_.find({worker, time.join});
  return departed != departed_.end() && time.clock < departed->second;
}

void WorkerClocks::FinishClock() {
  const async::MutexLock lock(&mutex_);
  HAWSER_CHECK(synchronous() && applied_ < completed_)
      << "clock " << applied_ << " is not complete";
  ++applied_;
  for (auto& [id, worker] : workers_) {
    worker.steps.erase(worker.steps.begin(),
                       worker.steps.lower_bound(applied_));
  }
  std::erase_if(departed_, [applied = applied_](const auto& departure) {
    return departure.second <= applied;
  });
}

absl::StatusOr<bool> WorkerClocks::CanPull(rpc::Incarnation id,
                                           WorkerTime time) const {
  const async::MutexLock lock(&mutex_);
  const Worker* const worker = Find(id, time.join);
  if (worker == nullptr) return NotJoined();
  if (!synchronous()) {
    return worker->clock >= time.clock &&
           completed_ >= time.clock - consistency_.bound;
  }
  if (time.clock < completed_) {
    return absl::FailedPreconditionError(
        absl::StrCat("a pull at clock ", time.clock, " of '", worker->name,
                     "', which has completed that clock"));
  }
  return applied_ >= time.clock;
}

bool WorkerClocks::HasLeft(rpc::Incarnation worker, uint64_t join) const {
  const async::MutexLock lock(&mutex_);
  return Find(worker, join) == nullptr;
}

int64_t WorkerClocks::ClockOf(rpc::Incarnation worker) const {
  const async::MutexLock lock(&mutex_);
  const auto found = workers_.find(worker);
  return std::max(completed_,
                  found == workers_.end() ? 0 : found->second.clock);
}

int64_t WorkerClocks::completed() const {
  const async::MutexLock lock(&mutex_);
  return completed_;
}

int64_t WorkerClocks::applied() const {
  const async::MutexLock lock(&mutex_);
  return applied_;
}

std::optional<int64_t> WorkerClocks::ClockToApply() const {
  const async::MutexLock lock(&mutex_);
  if (!synchronous() || applied_ >= completed_) return std::nullopt;
  return applied_;
}

int64_t WorkerClocks::num_workers() const {
  return static_cast<int64_t>(Workers().size());
}

std::vector<std::pair<rpc::Incarnation, std::string>> WorkerClocks::Workers()
    const {
  const async::MutexLock lock(&mutex_);
  std::vector<std::pair<rpc::Incarnation, std::string>> workers;
  for (const auto& [id, worker] : workers_) {
    if (!worker.left) workers.emplace_back(id, worker.name);
  }
  return workers;
}

std::string WorkerClocks::WaitsFor(rpc::Incarnation id, WorkerTime time) const {
  const async::MutexLock lock(&mutex_);
  if (!begun_) {
    return absl::StrCat("for ", num_expected_, " workers to join, of which ",
                        joined_.size(), " have");
  }
  // Where a worker is, its name, and the clock that it must reach.
  using Slow = std::tuple<int64_t, std::string, int64_t>;
  std::vector<Slow> slow;
  for (const auto& [other, worker] : workers_) {
    const int64_t needed =
        other == id ? time.clock : time.clock - consistency_.bound;
    if (!worker.left && worker.clock < needed) {
      slow.emplace_back(worker.clock, worker.name, needed);
    }
  }
  std::sort(slow.begin(), slow.end());
  const size_t more = slow.size() - std::min(slow.size(), kMaxNamed);
  slow.resize(slow.size() - more);
  std::string text = absl::StrCat(
      "for ", absl::StrJoin(slow, ", ", [](std::string* out, const Slow& one) {
        const auto& [clock, name, needed] = one;
        absl::StrAppend(out, "'", name, "' at clock ", clock,
                        " to reach clock ", needed);
      }));
  if (more > 0) absl::StrAppend(&text, " and ", more, " more");
  return text;
}

}  // namespace hawser::ps
