// Processes of a job that a launcher such as `hawser run` has started.

#ifndef HAWSER_LAUNCH_JOB_LAUNCHED_PROCESS_H_
#define HAWSER_LAUNCH_JOB_LAUNCHED_PROCESS_H_

#include "absl/status/statusor.h"
#include "launch/job/job_options.h"
#include "launch/process_place.h"

namespace hawser::launch {

// Returns `job` as the process at `place` sees it. If the launcher gives roles
// of the job, they and the number among those of the role apply; otherwise the
// first ranks have the first role. `job` is returned unchanged if it has no
// roles, if its role was given by a flag, or if no launcher has started
// several processes.
//
// kInvalidArgument: the launcher has started other numbers of processes than
// the roles have; names both.
absl::StatusOr<JobOptions> AtPlace(JobOptions job, const ProcessPlace& place);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_LAUNCHED_PROCESS_H_
