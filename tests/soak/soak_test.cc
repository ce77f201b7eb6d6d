// A job runs for a long time, while its processes die and start again. In the
// end nothing is left of the dead in the processes that lived throughout.
//
// To run it for another time: --test_env=HAWSER_SOAK_SECONDS=3600.

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/random_source.h"
#include "async/testing/nightly.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/soak/environment_number.h"
#include "tests/soak/soak_job.h"

namespace hawser::tests {
namespace {

// Numbers that are 0 in a job without load.
constexpr const char* kHeld[] = {
    "agent.client_active_calls",
    "agent.server_active_async_calls",
    "agent.queued_closures",
    "stream.open",
    "rref.owners",
    "rref.awaited",
    "rref.forks",
    "rref.remote_forks",
    "rref.users",
    "rref.unconfirmed_users",
    "dist_autograd.contexts",
    "dist_autograd.backward_passes",
};

// Numbers of other workers of which something is remembered: at most those that
// live, and those that have just died.
constexpr const char* kOfOthers[] = {
    "agent.remembered_senders",
    "rref.control_senders",
    "rref.control_receivers",
};
constexpr int64_t kMaxOthers = 8;

// Threads of an agent's pool by default: they start on demand, and stay.
constexpr int64_t kPoolThreads = 16;

// What a process remembers of up to 65,536 ended contexts and references each,
// to recognize late messages; the host also of changes of its store.
constexpr int64_t kRememberedKib = 24 << 10;
constexpr int64_t kRememberedByHostKib = 40 << 10;

std::string HoldsNothing(const SoakJob::Census& census) {
  std::string violations;
  for (const char* name : kHeld) {
    const auto entry = census.find(name);
    if (entry == census.end()) {
      absl::StrAppend(&violations, name, " is not counted; ");
    } else if (entry->second != 0) {
      absl::StrAppend(&violations, name, " is ", entry->second, "; ");
    }
  }
  for (const char* name : kOfOthers) {
    const auto entry = census.find(name);
    if (entry == census.end()) {
      absl::StrAppend(&violations, name, " is not counted; ");
    } else if (entry->second > kMaxOthers) {
      absl::StrAppend(&violations, name, " is ", entry->second, "; ");
    }
  }
  return violations;
}

absl::Duration TimeToRun() {
  return absl::Seconds(EnvironmentNumber("HAWSER_SOAK_SECONDS",
                                         async::NightlyOr<uint64_t>(600, 20)));
}

TEST(SoakTest, NothingIsLeftOfTheDead) {
  // In these processes nothing may grow.
  const std::vector<std::string> survivors = {"host", "server0", "trainer0"};
  const std::vector<std::string> mortal = {"server1", "server2", "trainer1",
                                           "trainer2", "trainer3"};
  const absl::Time end = absl::Now() + TimeToRun();
  async::RandomSource random(1);
  SoakJob job(
      {.slack = async::NightlyOr(absl::ZeroDuration(), absl::Seconds(30))});
  ASSERT_TRUE(job.Start());
  job.RunFor(async::NightlyOr(absl::Minutes(1), absl::Seconds(5)));
  EXPECT_GT(job.num_steps(), 0);
  EXPECT_EQ(job.num_failed_steps(), 0)
      << "while all processes lived; the last: " << job.last_failure();
  job.Pause();
  auto before = job.AwaitCensus(HoldsNothing);
  job.Resume();

  int num_deaths = 0;
  while (absl::Now() < end && !HasFailure()) {
    job.RunFor(absl::Milliseconds(random.Below(2000)));
    if (random.Below(10) == 0) {
      job.StopAndRestart(mortal[random.Below(mortal.size())]);
      ++num_deaths;
      continue;
    }
    const size_t first = random.Below(mortal.size());
    std::vector<std::string> victims = {mortal[first]};
    if (random.Below(3) == 0) {
      victims.push_back(mortal[(first + 1) % mortal.size()]);
    }
    job.KillAndRestart(victims);
    num_deaths += static_cast<int>(victims.size());
  }
  RecordProperty("deaths", num_deaths);
  RecordProperty("steps", absl::StrCat(job.num_steps()));
  RecordProperty("failed_steps", absl::StrCat(job.num_failed_steps()));
  job.told().Record("told");

  job.Pause();
  auto after = job.AwaitCensus(HoldsNothing);
  for (const std::string& name : survivors) {
    for (const char* number :
         {"process.descriptors", "process.threads", "process.resident_kib"}) {
      RecordProperty(
          absl::StrCat(name, ".", number),
          absl::StrCat(before[name][number], " after the first minute, ",
                       after[name][number], " at the end"));
    }
    EXPECT_LE(after[name]["process.descriptors"],
              before[name]["process.descriptors"] + 4)
        << name;
    EXPECT_LE(after[name]["process.threads"],
              before[name]["process.threads"] + kPoolThreads)
        << name;
    EXPECT_LE(after[name]["process.resident_kib"],
              before[name]["process.resident_kib"] +
                  (name == "host" ? kRememberedByHostKib : kRememberedKib))
        << name;
  }
  job.Leave();
}

}  // namespace
}  // namespace hawser::tests
