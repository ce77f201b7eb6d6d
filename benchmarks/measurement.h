#ifndef HAWSER_BENCHMARKS_MEASUREMENT_H_
#define HAWSER_BENCHMARKS_MEASUREMENT_H_

#include <string>
#include <vector>

namespace hawser::benchmarks {

// Direction in which a measured value improves.
enum class Better { kHigher, kLower };

// One thing measured beside one peer, in turns: value i and peer value i were
// taken right after each other.
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

// How far Hawser is ahead, above 1 meaning ahead: the median over the turns of
// value / peer value, or of its inverse where lower is better. The machine's
// slow moments fall on both sides of a turn, so this is steadier than the
// ratio of the medians.
double Ratio(const Measurement& measurement);

// Prints the measurement as one JSON object on a line of standard output:
// {"bench","case","unit","value","peer","peer_value","ratio"} with medians, and
// a line for people, with the spread of the ratio, on standard error.
void Report(const Measurement& measurement);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_MEASUREMENT_H_
