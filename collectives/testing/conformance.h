// Test of the promises of ProcessGroup, for each backend.

#ifndef HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_
#define HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/backend.h"
#include "collectives/process_group.h"
#include "gtest/gtest.h"

namespace hawser::collectives {

// Connects the backends of `size` ranks, each of which a thread will use.
using MakeBackends =
    std::function<std::vector<std::unique_ptr<Backend>>(int size)>;

struct ConformanceParam {
  MakeBackends make;
  int size = 1;
};

std::string ConformanceName(
    const testing::TestParamInfo<ConformanceParam>& info);

// Groups of the sizes that the promise names.
std::vector<ConformanceParam> ConformanceParams(const MakeBackends& make);

// Calls `body(group)` in a thread for each rank of a new group.
void RunRanks(const MakeBackends& make, int size,
              const std::function<void(ProcessGroup&)>& body,
              const ProcessGroupOptions& options = {});

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
