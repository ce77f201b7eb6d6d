// Processor time and memory of another process.

#ifndef HAWSER_BENCHMARKS_PROCESS_USAGE_H_
#define HAWSER_BENCHMARKS_PROCESS_USAGE_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hawser::benchmarks {

// Processor time that all threads of process `pid` have used since its start,
// those that have ended included. Precise to the nanosecond, unlike
// /proc/PID/stat. kNotFound if there is no such process.
absl::StatusOr<absl::Duration> CpuTimeOf(pid_t pid);

// Proportional set size of process `pid` in bytes, from
// /proc/PID/smaps_rollup: a page that N processes share counts 1/N for each.
// kNotFound if the process has no such file.
absl::StatusOr<int64_t> ProportionalBytesOf(pid_t pid);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_PROCESS_USAGE_H_
