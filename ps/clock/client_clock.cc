#include "ps/clock/client_clock.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "ps/storage/worker_time.h"

namespace hawser::ps {

absl::StatusOr<uint64_t> ClientClock::BeginJoin() {
  const async::MutexLock lock(&mutex_);
  if (joining_ || time_.joined()) {
    return absl::AlreadyExistsError(
        "this worker has joined the table's clock already: share the "
        "ps::WorkerClock");
  }
  joining_ = true;
  return ++joins_;
}

void ClientClock::Join(int64_t clock) {
  const async::MutexLock lock(&mutex_);
  joining_ = false;
  time_ = {joins_, clock};
  failed_ = absl::OkStatus();
  pushes_.clear();
}

WorkerTime ClientClock::Leave() {
  const async::MutexLock lock(&mutex_);
  joining_ = false;
  return std::exchange(time_, {});
}

absl::StatusOr<WorkerTime> ClientClock::BeginPull() {
  const async::MutexLock lock(&mutex_);
  if (!time_.joined()) return time_;
  RETURN_IF_ERROR(failed_);
  ++pulls_[{time_.join, time_.clock}];
  return time_;
}

void ClientClock::BeginPullAt(WorkerTime time) {
  const async::MutexLock lock(&mutex_);
  ++pulls_[{time.join, time.clock}];
}

std::vector<ClientClock::Step> ClientClock::TakeStepsLocked() {
  std::vector<Step> steps;
  while (!held_.empty()) {
    const WorkerTime time = held_.front().time;
    if (!pulls_.empty() &&
        pulls_.begin()->first < std::pair(time.join, time.clock)) {
      break;
    }
    steps.push_back(std::move(held_.front()));
    held_.pop_front();
  }
  return steps;
}

std::vector<ClientClock::Step> ClientClock::EndPull(WorkerTime time) {
  if (!time.joined()) return {};
  const async::MutexLock lock(&mutex_);
  const auto count = pulls_.find({time.join, time.clock});
  if (--count->second == 0) pulls_.erase(count);
  return TakeStepsLocked();
}

absl::StatusOr<WorkerTime> ClientClock::BeginPush(
    const std::vector<std::string>& servers) {
  const async::MutexLock lock(&mutex_);
  if (!time_.joined()) return time_;
  RETURN_IF_ERROR(failed_);
  for (const std::string& server : servers) ++pushes_[server];
  return time_;
}

absl::StatusOr<std::vector<ClientClock::Step>> ClientClock::Advance() {
  const async::MutexLock lock(&mutex_);
  if (!time_.joined()) {
    return absl::FailedPreconditionError(
        "the worker has left the table's clock");
  }
  RETURN_IF_ERROR(failed_);
  ++time_.clock;
  held_.push_back({time_, std::exchange(pushes_, {})});
  return TakeStepsLocked();
}

void ClientClock::Fail(WorkerTime time, const absl::Status& status) {
  const async::MutexLock lock(&mutex_);
  if (time.joined() && time.join == time_.join) failed_.Update(status);
}

absl::Status ClientClock::status() const {
  const async::MutexLock lock(&mutex_);
  return failed_;
}

int64_t ClientClock::clock() const {
  const async::MutexLock lock(&mutex_);
  return time_.clock;
}

}  // namespace hawser::ps
