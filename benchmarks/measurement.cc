#include "benchmarks/measurement.h"

#include <algorithm>
#include <cstdio>

#include "async/check.h"
#include "nlohmann/json.hpp"

namespace hawser::benchmarks {
namespace {

std::vector<double> SortedRatios(const Measurement& measurement) {
  HAWSER_CHECK(!measurement.values.empty() &&
               measurement.values.size() == measurement.peer_values.size())
      << "a measurement requires equally many turns of both sides, at least "
         "one";
  std::vector<double> ratios;
  for (size_t i = 0; i < measurement.values.size(); ++i) {
    const double ratio = measurement.values[i] / measurement.peer_values[i];
    ratios.push_back(measurement.better == Better::kHigher ? ratio : 1 / ratio);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

}  // namespace

double Median(std::vector<double> values) {
  HAWSER_CHECK(!values.empty()) << "the median requires at least one value";
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

double Ratio(const Measurement& measurement) {
  return Median(SortedRatios(measurement));
}

void Report(const Measurement& measurement) {
  const std::vector<double> ratios = SortedRatios(measurement);
  const double value = Median(measurement.values);
  const double peer_value = Median(measurement.peer_values);
  nlohmann::ordered_json line;
  line["bench"] = measurement.bench;
  line["case"] = measurement.case_name;
  line["unit"] = measurement.unit;
  line["value"] = value;
  line["peer"] = measurement.peer;
  line["peer_value"] = peer_value;
  line["ratio"] = Median(ratios);
  std::fprintf(stderr, "%-16s %12.1f %s, %s %.1f: ratio %.2f [%.2f .. %.2f]\n",
               measurement.case_name.c_str(), value, measurement.unit.c_str(),
               measurement.peer.c_str(), peer_value, Median(ratios),
               ratios.front(), ratios.back());
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

void ReportSkipped(const std::string& bench, const std::string& case_name,
                   const std::string& peer, const absl::Status& reason) {
  nlohmann::ordered_json line;
  line["bench"] = bench;
  line["case"] = case_name;
  line["peer"] = peer;
  line["skipped"] = std::string(reason.message());
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace hawser::benchmarks
