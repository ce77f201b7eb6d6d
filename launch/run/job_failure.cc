#include "launch/run/job_failure.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hawser::launch {

std::string ToText(const JobFailure& failure) {
  return absl::StrCat(failure.may_restart ? "restart" : "end", "\n",
                      failure.exit_code, "\n", failure.description, "\n",
                      failure.last_lines);
}

absl::StatusOr<JobFailure> ParseJobFailure(const std::string& text) {
  const std::vector<std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('\n', 3));
  JobFailure failure;
  if (parts.size() != 4 || (parts[0] != "restart" && parts[0] != "end") ||
      !absl::SimpleAtoi(parts[1], &failure.exit_code)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' does not describe the failure of a job"));
  }
  failure.may_restart = parts[0] == "restart";
  failure.description = parts[2];
  failure.last_lines = parts[3];
  return failure;
}

}  // namespace hawser::launch
