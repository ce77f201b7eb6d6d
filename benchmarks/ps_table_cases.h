// Cases of //benchmarks:ps of a table in one process.

#ifndef HAWSER_BENCHMARKS_PS_TABLE_CASES_H_
#define HAWSER_BENCHMARKS_PS_TABLE_CASES_H_

#include "absl/status/status.h"
#include "benchmarks/ps_workload.h"

namespace hawser::benchmarks {

// Runs and reports those that are wanted.
absl::Status RunTableCases(const PsRun& run);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_PS_TABLE_CASES_H_
