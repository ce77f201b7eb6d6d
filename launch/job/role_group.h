// The process group of a role of a job.

#ifndef HAWSER_LAUNCH_JOB_ROLE_GROUP_H_
#define HAWSER_LAUNCH_JOB_ROLE_GROUP_H_

#include "absl/status/statusor.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "launch/job/job_member.h"

namespace hawser::launch {

// Makes a process group of all processes of the role of `member`, in which rank
// i has the index i. All of them call it with the same name, another one each
// time. When the job ends with an error, the operations of the group do too.
// The group belongs to the member; do not use it after JobMember::Leave.
//
// kFailedPrecondition: the services given to JobMember::Join lack a
// collectives::GroupService. Other errors are those of its MakeGroup.
// Thread-safe.
absl::StatusOr<collectives::ProcessGroup*> MakeRoleGroup(
    JobMember& member, const collectives::MakeGroupOptions& options = {});

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_ROLE_GROUP_H_
