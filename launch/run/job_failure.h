#ifndef HAWSER_LAUNCH_RUN_JOB_FAILURE_H_
#define HAWSER_LAUNCH_RUN_JOB_FAILURE_H_

#include <string>

#include "absl/status/statusor.h"

namespace hawser::launch {

// The reason why an attempt to run a job ended, as all launchers report it.
struct JobFailure {
  // Whether a new attempt may succeed.
  bool may_restart = false;
  // Exit code of the launchers if there is no new attempt.
  int exit_code = 1;
  // One line: "rank 3 on host node1 exited with code 7".
  std::string description = {};
  // The last lines of output of the process, each with a newline.
  std::string last_lines = {};
};

// Text that ParseJobFailure reads. kInvalidArgument if it is malformed.
std::string ToText(const JobFailure& failure);
absl::StatusOr<JobFailure> ParseJobFailure(const std::string& text);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_JOB_FAILURE_H_
