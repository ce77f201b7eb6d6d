#include "collectives/agent/group_service.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::collectives {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::Status LostError(const std::string& worker, const std::string& reason) {
  return absl::UnavailableError(
      absl::StrCat("worker '", worker, "' of the group was lost: ", reason));
}

}  // namespace

absl::Status GroupService::Start(rpc::ServiceHost& host) {
  const async::MutexLock lock(&mutex_);
  host_ = &host;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ProcessGroup>> GroupService::MakeGroup(
    const std::vector<std::string>& workers, MakeGroupOptions options) {
  store::Store* store = nullptr;
  std::string self;
  size_t num_lost = 0;
  {
    const async::MutexLock lock(&mutex_);
    if (host_ == nullptr) {
      return absl::FailedPreconditionError(
          "MakeGroup needs an agent that was not shut down");
    }
    store = host_->store();
    self = host_->info().name;
    num_lost = lost_.size();
  }
  const auto found = std::find(workers.begin(), workers.end(), self);
  if (found == workers.end() ||
      std::set<std::string>(workers.begin(), workers.end()).size() !=
          workers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the workers of process group \"", options.group.name,
                     "\" must be different, and '", self, "' one of them"));
  }
  options.rank = static_cast<int>(found - workers.begin());
  options.size = static_cast<int>(workers.size());
  ASSIGN_OR_RETURN(std::shared_ptr<ProcessGroup> group,
                   MakeProcessGroup(*store, options));
  const async::MutexLock lock(&mutex_);
  for (size_t i = num_lost; i < lost_.size(); ++i) {
    if (Contains(workers, lost_[i])) {
      return LostError(lost_[i], "while the group was made");
    }
  }
  std::erase_if(members_, [](const Member& m) { return m.group.expired(); });
  members_.push_back({.workers = workers, .group = group});
  return group;
}

template <class Belongs>
void GroupService::Abort(const Belongs& belongs, const absl::Status& status) {
  std::vector<std::shared_ptr<ProcessGroup>> groups;
  {
    const async::MutexLock lock(&mutex_);
    for (const Member& member : members_) {
      if (!belongs(member)) continue;
      if (auto group = member.group.lock()) groups.push_back(std::move(group));
    }
  }
  for (const auto& group : groups) group->Abort(status);
}

void GroupService::OnWorkerLost(const rpc::WorkerInfo& worker,
                                const absl::Status& status) {
  {
    const async::MutexLock lock(&mutex_);
    lost_.push_back(worker.name);
  }
  Abort([&](const Member& m) { return Contains(m.workers, worker.name); },
        LostError(worker.name, std::string(status.message())));
}

void GroupService::Interrupt() {
  Abort([](const Member&) { return true; },
        absl::AbortedError("the worker of this rank stops"));
}

void GroupService::Stop() {
  const async::MutexLock lock(&mutex_);
  host_ = nullptr;
}

}  // namespace hawser::collectives
