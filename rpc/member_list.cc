#include "rpc/member_list.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/rpc.pb.h"
#include "rpc/membership_log.h"

namespace hawser::rpc {

absl::StatusOr<std::vector<WorkerInfo>> ListMembers(store::Store* store,
                                                    std::string_view job) {
  MembershipLog log(store, job);
  absl::StatusOr<uint64_t> length = log.Length();
  if (absl::IsDeadlineExceeded(length.status())) {
    return absl::NotFoundError(absl::StrCat(
        "no worker has joined job '", absl::string_view(job.data(), job.size()),
        "' at this store"));
  }
  RETURN_IF_ERROR(length.status());
  std::vector<WorkerInfo> joined;
  for (uint64_t number = 1; number <= *length; ++number) {
    ASSIGN_OR_RETURN(const std::optional<v1::MembershipEvent> event,
                     log.Read(number));
    // What comes after a number that is not written yet is not settled.
    if (!event.has_value()) break;
    if (!event->has_joined()) continue;
    ASSIGN_OR_RETURN(WorkerInfo worker, FromRecord(event->joined()));
    joined.push_back(std::move(worker));
  }
  // Read after that: who left meanwhile has left.
  ASSIGN_OR_RETURN(const auto gone, log.Gone());
  std::erase_if(joined, [&](const WorkerInfo& worker) {
    return gone.contains(worker.incarnation);
  });
  std::stable_sort(
      joined.begin(), joined.end(),
      [](const WorkerInfo& a, const WorkerInfo& b) { return a.id < b.id; });
  return joined;
}

}  // namespace hawser::rpc
