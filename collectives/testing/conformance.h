// Test of the promises of ProcessGroup, for each backend.

#ifndef HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_
#define HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/process_group.h"
#include "collectives/reduce_op.h"
#include "collectives/testing/run_ranks.h"
#include "gtest/gtest.h"

namespace hawser::collectives {

// Promises that a backend may not keep.
struct ConformanceTraits {
  // Reduces integers by bitwise operations; otherwise kUnimplemented.
  bool has_bitwise_ops = true;
  // Averages of 16-bit types are rounded once.
  bool rounds_averages_once = true;
  // A NaN among the operands of min and max makes the result NaN.
  bool keeps_nan = true;
};

struct ConformanceParam {
  MakeBackends make;
  int size = 1;
  ConformanceTraits traits = {};
};

std::string ConformanceName(
    const testing::TestParamInfo<ConformanceParam>& info);

// Groups of these sizes.
std::vector<ConformanceParam> ConformanceParams(
    const MakeBackends& make, const ConformanceTraits& traits = {},
    const std::vector<int>& sizes = {1, 2, 3, 4, 7, 8});

// A test of a backend instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(
//       Loopback, ConformanceTest,
//       testing::ValuesIn(ConformanceParams(MakeLoopbackBackends)),
//       ConformanceName);
class ConformanceTest : public testing::TestWithParam<ConformanceParam> {
 protected:
  int size() const { return GetParam().size; }
  const ConformanceTraits& traits() const { return GetParam().traits; }
  void Run(const std::function<void(ProcessGroup&)>& body,
           const ProcessGroupOptions& options = {}) {
    RunRanks(GetParam().make, size(), body, options);
  }
  static void ExpectEqual(const Tensor& actual, const Tensor& expected,
                          const std::string& what);
  // Compares with a serial reduction of the operands of the test.
  void ExpectReduced(const Tensor& actual, ReduceOp op, int64_t length,
                     int size, const std::string& what) const;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_TESTING_CONFORMANCE_H_
