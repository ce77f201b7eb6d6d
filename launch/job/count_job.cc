// A job for job_program_test: its counters count to --count, and the first one
// prints the sum.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "launch/job/job_member.h"
#include "launch/job/job_options.h"
#include "launch/job/job_program.h"
#include "launch/job/stop_signals.h"

ABSL_FLAG(int, counters, 2, "Number of processes; 0: count in this one.");
ABSL_FLAG(int64_t, count, 10, "Samples of each; negative: forever.");
ABSL_FLAG(int64_t, more, 0, "Samples in addition.");

namespace hawser::launch {
namespace {

int64_t Count() { return absl::GetFlag(FLAGS_count); }

absl::Status CountSamples(JobMember& member) {
  while (Count() < 0) {
    if (member.AddSamples(1) == 1) std::fprintf(stderr, "counting\n");
    RETURN_IF_ERROR(member.Check());
  }
  member.AddSamples(Count() + absl::GetFlag(FLAGS_more));
  ASSIGN_OR_RETURN(const int64_t sum, member.FinishSamples());
  if (member.options().index > 0) return member.WaitForEnd();
  std::printf("%lld\n", static_cast<long long>(sum));
  return member.EndJob();
}

absl::Status Run(const JobOptions& job, StopSignals&) {
  if (job.roles.empty()) {
    std::printf("%lld\n", static_cast<long long>(Count()));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto member, JobMember::Join(job));
  return member->Leave(CountSamples(*member));
}

}  // namespace
}  // namespace hawser::launch

int main(int argc, char** argv) {
  using hawser::launch::JobRole;
  return hawser::launch::RunJobProgram(
      {.name = "count_job",
       .usage = {.summary = "Counts."},
       .flags_file = __FILE__,
       .read_flags = []() -> absl::StatusOr<std::vector<JobRole>> {
         if (absl::GetFlag(FLAGS_counters) == 0) return std::vector<JobRole>();
         return std::vector<JobRole>{
             {"counter", absl::GetFlag(FLAGS_counters)}};
       },
       .check =
           [] {
             return hawser::launch::Count() == 13
                        ? absl::InvalidArgumentError("--count=13: no")
                        : absl::OkStatus();
           },
       .child_flags =
           [] { return std::vector<std::string>{absl::StrCat("--more=", 1)}; },
       .run = hawser::launch::Run},
      argc, argv);
}
