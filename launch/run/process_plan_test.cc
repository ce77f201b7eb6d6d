#include "launch/run/process_plan.h"

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/run/node.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::IsSupersetOf;
using ::testing::Pair;

// Two nodes of unequal sizes.
std::vector<Node> Nodes() {
  return {{.host = "a", .roles = {{"server", 2}, {"trainer", 1}}},
          {.host = "b", .roles = {{"trainer", 2}, {"server", 1}}}};
}

TEST(ProcessPlanTest, RanksFollowNodesAndLocalRanks) {
  const std::vector<ProcessPlan> first = PlanProcesses(Nodes(), 0);
  const std::vector<ProcessPlan> second = PlanProcesses(Nodes(), 1);
  ASSERT_EQ(first.size(), 3u);
  ASSERT_EQ(second.size(), 3u);
  EXPECT_EQ(first[2].rank, 2);
  EXPECT_EQ(first[2].name(), "trainer0");
  EXPECT_EQ(second[0].rank, 3);
  EXPECT_EQ(second[0].local_rank, 0);
  EXPECT_EQ(second[1].name(), "trainer2");
  EXPECT_EQ(second[2].rank, 5);
  EXPECT_EQ(second[2].name(), "server2");
  EXPECT_EQ(second[2].role_world_size, 3);
  EXPECT_EQ(second[2].world_size, 6);
  EXPECT_EQ(second[2].local_world_size, 3);
}

TEST(ProcessPlanTest, ProcessWithoutARoleIsNamedByItsRank) {
  const std::vector<Node> nodes(2, {.host = "a", .roles = {{"default", 2}}});
  EXPECT_EQ(PlanProcesses(nodes, 1)[0].name(), "rank 2");
}

TEST(ProcessPlanTest, EnvironmentIsThatOfTorchrun) {
  unsetenv("PYTHONUNBUFFERED");
  setenv("OMP_NUM_THREADS", "7", 1);
  const ProcessPlan plan = PlanProcesses(Nodes(), 1)[1];
  EXPECT_THAT(
      EnvironmentOf(plan, {.master = {"host", 1234},
                           .restart_count = 2,
                           .max_restarts = 5,
                           .run_id = "job"}),
      ::testing::UnorderedElementsAre(
          Pair("RANK", "4"), Pair("WORLD_SIZE", "6"), Pair("LOCAL_RANK", "1"),
          Pair("LOCAL_WORLD_SIZE", "3"), Pair("GROUP_RANK", "1"),
          Pair("GROUP_WORLD_SIZE", "2"), Pair("ROLE_NAME", "trainer"),
          Pair("ROLE_RANK", "2"), Pair("ROLE_WORLD_SIZE", "3"),
          Pair("MASTER_ADDR", "host"), Pair("MASTER_PORT", "1234"),
          Pair("TORCHELASTIC_RESTART_COUNT", "2"),
          Pair("TORCHELASTIC_MAX_RESTARTS", "5"),
          Pair("TORCHELASTIC_RUN_ID", "job"),
          Pair("TORCHELASTIC_USE_AGENT_STORE", "False"),
          Pair("HAWSER_INIT", "env://"), Pair("PYTHONUNBUFFERED", "1")));
  unsetenv("OMP_NUM_THREADS");
  EXPECT_THAT(EnvironmentOf(plan, {}),
              IsSupersetOf({Pair("OMP_NUM_THREADS", "1")}));
}

TEST(ProcessPlanTest, NodeIsReadAsItIsWritten) {
  const Node node{.host = "a",
                  .roles = {{"server", 2}, {"trainer", 1}},
                  .num_nodes = 3,
                  .max_restarts = 4};
  const auto read = ParseNode(ToText(node));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(ToText(*read), "a 3 4 server=2,trainer=1");
  EXPECT_EQ(read->count("trainer"), 1);
  for (const char* text : {"", "a 1 2", "a x 2 b=1", "a 1 2 b", "a 1 2 b=0"}) {
    EXPECT_THAT(ParseNode(text), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

// Another launcher wrote the text.
TEST(ProcessPlanTest, NodeWithTooManyProcessesIsMalformed) {
  EXPECT_THAT(ParseNode("host 2 0 a=4000,b=96"), async::IsOk());
  EXPECT_THAT(ParseNode("host 2 0 a=4000,b=97"),
              async::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseNode("host 2 0 a=1,b=2147483647"),
              async::StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::launch
