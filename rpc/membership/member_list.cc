#include "rpc/membership/member_list.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/rpc.pb.h"
#include "rpc/membership/membership_log.h"

namespace hawser::rpc {

absl::StatusOr<std::vector<WorkerInfo>> ListMembers(store::Store* store,
                                                    std::string_view job) {
  MembershipLog log(store, job);
  ASSIGN_OR_RETURN(const std::vector<v1::MembershipEvent> events,
                   log.ReadAll());
  if (events.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no worker has joined job '", absl::string_view(job.data(), job.size()),
        "' at this store"));
  }
  const absl::flat_hash_set<Incarnation> departed = DepartedIn(events);
  std::vector<WorkerInfo> joined;
  for (const v1::MembershipEvent& event : events) {
    if (!event.has_joined()) continue;
    ASSIGN_OR_RETURN(WorkerInfo worker, FromRecord(event.joined()));
    if (!departed.contains(worker.incarnation))
      joined.push_back(std::move(worker));
  }
  std::stable_sort(
      joined.begin(), joined.end(),
      [](const WorkerInfo& a, const WorkerInfo& b) { return a.id < b.id; });
  return joined;
}

}  // namespace hawser::rpc
