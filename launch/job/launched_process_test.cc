#include "launch/job/launched_process.h"

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::launch {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

const JobOptions kJob = {.roles = {{"server", 2}, {"trainer", 3}}};

ProcessPlace Place(int rank, int world_size = 5) {
  return {.source = PlaceSource::kTorchrun,
          .rank = rank,
          .world_size = world_size,
          .role = "default",
          .role_rank = rank,
          .role_world_size = world_size,
          .master_address = "10.0.0.1",
          .master_port = 2345};
}

TEST(LaunchedProcessTest, FirstRanksHaveTheFirstRole) {
  const auto server = AtPlace(kJob, Place(1));
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(server->name(), "server1");
  EXPECT_EQ(server->rank(), 1);
  EXPECT_EQ(server->master, "tcp://10.0.0.1:2345");
  const auto trainer = AtPlace(kJob, Place(4));
  ASSERT_THAT(trainer, IsOk());
  EXPECT_EQ(trainer->name(), "trainer2");
  EXPECT_EQ(trainer->rank(), 4);
}

TEST(LaunchedProcessTest, RolesOfTheLauncherApply) {
  ProcessPlace place = Place(0);
  place.role = "trainer";
  place.role_rank = 1;
  place.role_world_size = 3;
  const auto trainer = AtPlace(kJob, place);
  ASSERT_THAT(trainer, IsOk());
  EXPECT_EQ(trainer->name(), "trainer1");
  EXPECT_EQ(trainer->rank(), 3);
}

TEST(LaunchedProcessTest, OtherNumbersAreRefused) {
  EXPECT_THAT(AtPlace(kJob, Place(0, 4)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("4 processes"),
                             HasSubstr("server=2, trainer=3"))));
  ProcessPlace place = Place(0);
  place.role = "server";
  place.role_world_size = 1;
  EXPECT_THAT(AtPlace(kJob, place),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 processes of the role server")));
}

TEST(LaunchedProcessTest, OtherProcessesStay) {
  const auto same = [](const JobOptions& job, const ProcessPlace& place) {
    const auto at_place = AtPlace(job, place);
    return at_place.ok() && at_place->role == job.role &&
           at_place->index == job.index && at_place->master == job.master;
  };
  EXPECT_TRUE(same(kJob, ProcessPlace()));
  // A shell of SLURM, or one process under a launcher.
  EXPECT_TRUE(same(kJob, Place(0, 1)));
  EXPECT_TRUE(same({}, Place(3)));
  JobOptions given = kJob;
  given.role = "trainer";
  given.master = "tcp://a:1";
  EXPECT_TRUE(same(given, Place(0)));
}

}  // namespace
}  // namespace hawser::launch
