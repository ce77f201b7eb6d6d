#ifndef HAWSER_BENCHMARKS_MEASUREMENT_H_
#define HAWSER_BENCHMARKS_MEASUREMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hawser::benchmarks {

// Direction in which a measured value improves.
enum class Better { kHigher, kLower };

// A measurement of Hawser and of one peer, in alternating turns: value i and
// peer value i were measured one after the other.
struct Measurement {
  std::string bench = {};
  std::string case_name = {};
  std::string unit = {};
  Better better = Better::kHigher;
  std::string peer = {};
  std::vector<double> values = {};
  std::vector<double> peer_values = {};
};

// Median of `values`, which must not be empty.
double Median(std::vector<double> values);

// The median over the turns of value / peer value, or of its inverse if lower
// is better. Above 1, Hawser is better. If the machine is slow for some time,
// both values of a turn change, so this varies less than the ratio of the
// medians.
double Ratio(const Measurement& measurement);

// Prints the measurement to standard output as one line of JSON,
// {"bench","case","unit","value","peer","peer_value","ratio"} with medians, and
// to standard error as a readable line with the spread of the ratio.
void Report(const Measurement& measurement);

// Prints one line of JSON that says why a case has no result:
// {"bench","case","peer","skipped"}.
void ReportSkipped(const std::string& bench, const std::string& case_name,
                   const std::string& peer, const absl::Status& reason);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_MEASUREMENT_H_
