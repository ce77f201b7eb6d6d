#include "launch/job/role_group.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "collectives/agent/group_service.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "launch/job/job_member.h"
#include "rpc/agent/agent.h"

namespace hawser::launch {

absl::StatusOr<collectives::ProcessGroup*> MakeRoleGroup(
    JobMember& member, const collectives::MakeGroupOptions& options) {
  auto* const service = member.agent().service<collectives::GroupService>();
  if (service == nullptr) {
    return absl::FailedPreconditionError(
        "a process group needs a collectives::GroupService: give one to "
        "JobMember::Join");
  }
  ASSIGN_OR_RETURN(
      const std::shared_ptr<collectives::ProcessGroup> group,
      service->MakeGroup(member.options().workers(member.options().role),
                         options));
  member.KeepUntilLeft(group);
  member.ended().OnReady(
      [weak = std::weak_ptr(group)](const absl::Status& status) {
        const auto ended = weak.lock();
        if (!status.ok() && ended != nullptr) ended->Abort(status);
      });
  return group.get();
}

}  // namespace hawser::launch
