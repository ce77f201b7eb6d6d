// Cases of //benchmarks:ps of a server, in a process of its own.

#ifndef HAWSER_BENCHMARKS_PS_SERVER_CASES_H_
#define HAWSER_BENCHMARKS_PS_SERVER_CASES_H_

#include "absl/status/status.h"
#include "benchmarks/ps_workload.h"

namespace hawser::benchmarks {

// Runs and reports those that are wanted.
absl::Status RunServerCases(const PsRun& run);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_PS_SERVER_CASES_H_
