// Seeds of a simulation test.

#ifndef HAWSER_RPC_TESTING_SIMULATION_SEEDS_H_
#define HAWSER_RPC_TESTING_SIMULATION_SEEDS_H_

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "async/testing/nightly.h"
#include "gtest/gtest.h"

namespace hawser::rpc {

inline uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t number = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &number)) {
    ADD_FAILURE() << name << " is not a number: " << text;
  }
  return number;
}

// Calls `run` with seeds from 1 to 1,000, or to 20,000 in a nightly form, until
// it returns a non-empty failure text. To repeat one seed with its events
// logged:
//
//   ./bazelw test //rpc/tests/simulation:cluster_simulation_test
//   --test_output=all
//       --test_env=HAWSER_SIMULATION_SEED=<seed>
//
// To run another number of seeds: --test_env=HAWSER_SIMULATION_SEEDS=<count>.
inline void RunSeeds(
    absl::FunctionRef<std::string(uint64_t seed, bool verbose)> run) {
  const bool one = std::getenv("HAWSER_SIMULATION_SEED") != nullptr;
  const uint64_t first = NumberFromEnvironment("HAWSER_SIMULATION_SEED", 1);
  const uint64_t count =
      one ? 1
          : NumberFromEnvironment("HAWSER_SIMULATION_SEEDS",
                                  async::NightlyOr<uint64_t>(20'000, 1000));
  for (uint64_t seed = first; seed < first + count; ++seed) {
    ASSERT_EQ(run(seed, /*verbose=*/one), "")
        << "seed " << seed << "; again: HAWSER_SIMULATION_SEED=" << seed;
  }
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_SIMULATION_SEEDS_H_
