// Worker clocks in files.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "proto/table_files.pb.h"
#include "ps/storage/consistency.h"
#include "ps/storage/push_window.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

v1::TableClocks::Worker WorkerClocks::ToProto(const Worker& worker) {
  v1::TableClocks::Worker proto;
  proto.set_name(worker.name);
  proto.set_join(worker.join);
  proto.set_clock(worker.clock);
  if (worker.leaves_at.has_value()) proto.set_leaves_at(*worker.leaves_at);
  proto.set_left(worker.left);
  proto.set_highest(worker.applied.highest());
  proto.set_applied(worker.applied.Bits());
  for (const auto& [clock, step] : worker.steps) {
    v1::TableClocks::Step& written = *proto.add_steps();
    written.set_clock(clock);
    if (step.announced.has_value()) written.set_num_pushes(*step.announced);
    written.set_applied(step.applied);
  }
  return proto;
}

v1::TableClocks WorkerClocks::ToProto() const {
  const async::MutexLock lock(&mutex_);
  v1::TableClocks proto;
  proto.set_completed(applied_);
  proto.set_begun(begun_);
  proto.set_num_workers(num_expected_);
  for (const std::string& name : joined_) proto.add_joined(name);
  proto.set_highest_left(highest_left_);
  for (const auto& [id, worker] : workers_) {
    v1::TableClocks::Worker& written = *proto.add_workers();
    written = ToProto(worker);
    written.set_incarnation(rpc::ToNumber(id));
    if (synchronous() && worker.clock > applied_) {
      written.set_clock(applied_);
      written.set_left(false);
    }
  }
  return proto;
}

absl::StatusOr<WorkerClocks::Worker> WorkerClocks::FromProto(
    const v1::TableClocks::Worker& proto) {
  const std::optional<PushWindow> window =
      PushWindow::FromBits(proto.highest(), proto.applied());
  if (!window.has_value() || proto.join() == 0 || proto.clock() < 0 ||
      proto.clock() > kMaxClock) {
    return absl::InvalidArgumentError("a worker's clock is out of range");
  }
  Worker worker;
  worker.name = proto.name();
  worker.join = proto.join();
  worker.clock = proto.clock();
  if (proto.has_leaves_at()) worker.leaves_at = proto.leaves_at();
  worker.left = proto.left();
  worker.arrived = *window;
  worker.applied = *window;
  for (const v1::TableClocks::Step& step : proto.steps()) {
    if (step.clock() < proto.clock() || step.applied() < 0 ||
        step.num_pushes() < 0) {
      return absl::InvalidArgumentError("a step of a worker is out of range");
    }
    Step& read = worker.steps[step.clock()];
    if (step.has_num_pushes()) read.announced = step.num_pushes();
    read.arrived = step.applied();
    read.applied = step.applied();
  }
  return worker;
}

absl::StatusOr<std::unique_ptr<WorkerClocks>> WorkerClocks::FromProto(
    Consistency consistency, const v1::TableClocks& proto) {
  if (proto.completed() < 0 || proto.completed() > kMaxClock) {
    return absl::InvalidArgumentError(
        absl::StrCat("clock ", proto.completed(), " is out of range"));
  }
  auto clocks = std::make_unique<WorkerClocks>(consistency);
  const async::MutexLock lock(&clocks->mutex_);
  clocks->completed_ = proto.completed();
  clocks->applied_ = proto.completed();
  clocks->begun_ = proto.begun();
  clocks->num_expected_ = proto.num_workers();
  clocks->joined_.insert(proto.joined().begin(), proto.joined().end());
  clocks->highest_left_ = proto.highest_left();
  for (const v1::TableClocks::Worker& worker : proto.workers()) {
    const rpc::Incarnation id{worker.incarnation()};
    ASSIGN_OR_RETURN(clocks->workers_[id], FromProto(worker));
  }
  for (auto& [id, worker] : clocks->workers_) clocks->Advance(id, worker);
  return clocks;
}

}  // namespace hawser::ps
