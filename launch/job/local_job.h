// A whole job on this machine.

#ifndef HAWSER_LAUNCH_JOB_LOCAL_JOB_H_
#define HAWSER_LAUNCH_JOB_LOCAL_JOB_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/job/job_options.h"

namespace hawser::launch {

struct JobEnd {
  absl::Status status = {};
  // The signal that stopped the job; 0 if it ended otherwise.
  int stop_signal = 0;
};

// Serves the store of the job and starts each of its processes as a child that
// runs `command`, followed by the flags of launch/job/job_flags.h. Returns when
// all children have ended. An error names the process that failed first. Call
// it from the main thread, before other threads start.
JobEnd RunLocalJob(const JobOptions& options,
                   const std::vector<std::string>& command);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_LOCAL_JOB_H_
