// Seeds of a simulation test.

#ifndef HAWSER_RPC_TESTING_SIMULATION_SEEDS_H_
#define HAWSER_RPC_TESTING_SIMULATION_SEEDS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace hawser::rpc {

// The seeds from `first` to `last`.
struct SeedRange {
  uint64_t first = 1;
  uint64_t last = 1;

  friend bool operator==(const SeedRange&, const SeedRange&) = default;
  friend std::ostream& operator<<(std::ostream& out, const SeedRange& range) {
    return out << range.first << "-" << range.last;
  }
};

// Parses "7" or "1-1000".
//
// kInvalidArgument, naming the text.
absl::StatusOr<SeedRange> ParseSeeds(std::string_view text);

// Divides `seeds` into at most `count` ranges of about the same size, in order.
std::vector<SeedRange> Divide(const SeedRange& seeds, uint64_t count);

// The seeds of the environment variable HAWSER_SIMULATION_SEEDS, divided into
// test cases. If it is not set: 1-1000, or 1-100000 in a nightly form.
std::vector<SeedRange> SeedsOfCases();

// A simulation that runs once for each of many seeds. They are divided into
// test cases, so that the shards of a Bazel test run them in parallel:
//
//   using ReferenceSeedsTest = rpc::SeedsTest;
//   TEST_P(ReferenceSeedsTest, GuaranteesHold) {
//     RunSeeds([](uint64_t seed, bool verbose) { ... });
//   }
//   INSTANTIATE_TEST_SUITE_P(Seeds, ReferenceSeedsTest,
//                            testing::ValuesIn(rpc::SeedsOfCases()));
//
// To repeat one seed with its events logged:
//
//   ./bazelw test //rref:reference_simulation_test --test_output=all
//       --test_env=HAWSER_SIMULATION_SEEDS=<seed>
//
// Events of the same time may come in another order in another run, since the
// order of hash tables depends on addresses: repeat a seed that passes.
//
// To run other seeds: --test_env=HAWSER_SIMULATION_SEEDS=<first>-<last>.
class SeedsTest : public testing::TestWithParam<SeedRange> {
 protected:
  // Calls `run` with each seed of the case until it returns a non-empty failure
  // text. `verbose`: it is the only seed of the test.
  static void RunSeeds(
      absl::FunctionRef<std::string(uint64_t seed, bool verbose)> run);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_SIMULATION_SEEDS_H_
