// Test of the promises of ProcessGroup, for each backend.

#ifndef HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_
#define HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_

#include <functional>
#include <string>
#include <vector>

#include "collectives/process_group.h"
#include "collectives/testing/run_ranks.h"
#include "gtest/gtest.h"

namespace hawser::collectives {

struct ConformanceParam {
  MakeBackends make;
  int size = 1;
};

std::string ConformanceName(
    const testing::TestParamInfo<ConformanceParam>& info);

// Groups of the sizes that the promise names.
std::vector<ConformanceParam> ConformanceParams(const MakeBackends& make);

// A test of a backend instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(
//       Loopback, ConformanceTest,
//       testing::ValuesIn(ConformanceParams(MakeLoopbackBackends)),
//       ConformanceName);
class ConformanceTest : public testing::TestWithParam<ConformanceParam> {
 protected:
  int size() const { return GetParam().size; }
  void Run(const std::function<void(ProcessGroup&)>& body,
           const ProcessGroupOptions& options = {}) {
    RunRanks(GetParam().make, size(), body, options);
  }
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_
