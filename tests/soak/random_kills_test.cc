// Random processes of a running job die, also the one that serves its store.
//
// To run another number of deaths: --test_env=HAWSER_DEATHS=1000; with another
// order: --test_env=HAWSER_SEED=2.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/random_source.h"
#include "async/testing/nightly.h"
#include "gtest/gtest.h"
#include "tests/soak/environment_number.h"
#include "tests/soak/soak_job.h"

namespace hawser::tests {
namespace {

TEST(RandomKillsTest, OthersAreToldAndGoOn) {
  const uint64_t seed = EnvironmentNumber("HAWSER_SEED", 1);
  const uint64_t deaths =
      EnvironmentNumber("HAWSER_DEATHS", async::NightlyOr<uint64_t>(1000, 8));
  async::RandomSource random(seed);
  SoakJob job(
      {.seed = seed,
       .slack = async::NightlyOr(absl::ZeroDuration(), absl::Seconds(30))});
  ASSERT_TRUE(job.Start());
  const std::vector<std::string> names = job.names();
  uint64_t killed = 0;
  uint64_t stopped = 0;
  uint64_t hosts_killed = 0;
  while (killed + stopped + hosts_killed < deaths && !HasFailure()) {
    job.RunFor(absl::Milliseconds(random.Below(1000)));
    const size_t first = random.Below(names.size());
    // One of the first eight, so that the short form has it too.
    if ((killed + stopped + hosts_killed) % 20 == 5) {
      job.KillHostAndRestart();
      ++hosts_killed;
    } else if (random.Below(10) == 0) {
      job.StopAndRestart(names[first]);
      ++stopped;
    } else {
      std::vector<std::string> victims = {names[first]};
      // Neighbours by rank, whose leases one and the same worker watches.
      while (victims.size() < 3 && random.Below(3) == 0) {
        victims.push_back(names[(first + victims.size()) % names.size()]);
      }
      job.KillAndRestart(victims);
      killed += victims.size();
    }
  }
  RecordProperty("killed", absl::StrCat(killed));
  RecordProperty("stopped", absl::StrCat(stopped));
  RecordProperty("hosts_killed", absl::StrCat(hosts_killed));
  RecordProperty("steps", absl::StrCat(job.num_steps()));
  RecordProperty("failed_steps", absl::StrCat(job.num_failed_steps()));
  job.told().Record("told");
  job.Leave();
}

}  // namespace
}  // namespace hawser::tests
