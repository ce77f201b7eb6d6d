// Distribution of measured delays.

#ifndef HAWSER_TESTS_FAULTS_DELAYS_H_
#define HAWSER_TESTS_FAULTS_DELAYS_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hawser::tests {

// A set of measured delays. Not thread-safe.
class Delays {
 public:
  void Add(absl::Duration delay) { delays_.push_back(delay); }

  size_t count() const { return delays_.size(); }

  // The delay that `percent` of all do not exceed. Requires at least one delay.
  absl::Duration Percentile(int percent) {
    std::sort(delays_.begin(), delays_.end());
    return delays_[(delays_.size() - 1) * percent / 100];
  }

  // Writes the median, the 99th percentile and the maximum to the test report
  // as the property `name`. Does nothing without delays.
  void Record(const std::string& name) {
    if (delays_.empty()) return;
    testing::Test::RecordProperty(
        name, absl::FormatDuration(Percentile(50)) + " at the median, " +
                  absl::FormatDuration(Percentile(99)) +
                  " at the 99th percentile, " +
                  absl::FormatDuration(Percentile(100)) + " at most, of " +
                  std::to_string(count()));
  }

 private:
  std::vector<absl::Duration> delays_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_DELAYS_H_
