#include "benchmarks/process_usage.h"

#include <ctime>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::benchmarks {

absl::StatusOr<absl::Duration> CpuTimeOf(pid_t pid) {
  clockid_t clock = {};
  timespec time = {};
  if (clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot read the processor time of process ", pid));
  }
  return absl::DurationFromTimespec(time);
}

absl::StatusOr<int64_t> ProportionalBytesOf(pid_t pid) {
  const std::string path = absl::StrCat("/proc/", pid, "/smaps_rollup");
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == "Pss:" && file >> kilobytes) return kilobytes * 1024;
  }
  return absl::NotFoundError(absl::StrCat("cannot read \"Pss:\" in ", path));
}

}  // namespace hawser::benchmarks
