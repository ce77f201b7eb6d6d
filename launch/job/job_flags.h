// Flags of programs that run a job of processes with roles.

#ifndef HAWSER_LAUNCH_JOB_JOB_FLAGS_H_
#define HAWSER_LAUNCH_JOB_JOB_FLAGS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/job/job_options.h"

namespace hawser::launch {

// The file in which the flags are defined, for Usage.
extern const char kJobFlagsFile[];

// Returns the job with these roles and the values of --role, --index, --master,
// --external_store, --tls_cert, --tls_key, --tls_ca, --token_file,
// --bind_address, --interface, --silent_limit and --notice_period. Call it
// after the command line was parsed. Without roles, the program runs in one
// process, and --role must be unset. Without --role, the environment may say
// which process a launcher has made it.
//
// kInvalidArgument names the wrong flag and its permitted values, or the wrong
// environment variable; or is that of AtPlace.
absl::StatusOr<JobOptions> ReadJobFlags(std::vector<JobRole> roles);

// kInvalidArgument, naming the flag: its value is below `least`.
absl::Status CheckAtLeast(const char* flag, int64_t value, int64_t least);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_JOB_FLAGS_H_
