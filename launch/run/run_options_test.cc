#include "launch/run/run_options.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/endpoint.h"
#include "store/store_url.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Scheme = store::StoreUrl::Scheme;

absl::StatusOr<RunOptions> Parse(const RunFlags& flags) {
  return ParseRunFlags(flags, {"./train", "--epochs=3"});
}

TEST(RunOptionsTest, DefaultsAreOneProcessAtTheDefaultPort) {
  const auto options = Parse({});
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT(options->command, ElementsAre("./train", "--epochs=3"));
  EXPECT_EQ(options->num_nodes, 1);
  EXPECT_EQ(options->node_rank, 0);
  ASSERT_EQ(options->roles.size(), 1u);
  EXPECT_EQ(options->roles[0].name, "default");
  EXPECT_EQ(options->roles[0].count, 1);
  EXPECT_FALSE(options->rendezvous.has_value());
  EXPECT_EQ(options->run_id, "none");
  EXPECT_EQ(options->max_restarts, 0);
  EXPECT_EQ(options->master_address, "127.0.0.1");
  EXPECT_EQ(options->master_port, 29500);
  EXPECT_TRUE(options->redirects.empty());
  EXPECT_TRUE(options->tee.empty());
}

TEST(RunOptionsTest, StandaloneTakesAFreePort) {
  const auto options = Parse({.nproc_per_node = "4", .standalone = true});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->roles[0].count, 4);
  EXPECT_EQ(options->master_port, std::nullopt);
  EXPECT_FALSE(options->rendezvous.has_value());
}

TEST(RunOptionsTest, ProcessesPerNodeMayFollowTheCpus) {
  for (const char* text : {"auto", "cpu"}) {
    const auto options = Parse({.nproc_per_node = text});
    ASSERT_THAT(options, IsOk());
    EXPECT_GE(options->roles[0].count, 1);
  }
}

TEST(RunOptionsTest, RolesReplaceTheNumberOfProcesses) {
  const auto options = Parse({.role = "server=2,trainer=3"});
  ASSERT_THAT(options, IsOk());
  ASSERT_EQ(options->roles.size(), 2u);
  EXPECT_EQ(options->roles[0].name, "server");
  EXPECT_EQ(options->roles[0].count, 2);
  EXPECT_EQ(options->roles[1].name, "trainer");
  EXPECT_EQ(options->roles[1].count, 3);
  const auto named = Parse({.nproc_per_node = "2", .role = "trainer"});
  ASSERT_THAT(named, IsOk());
  EXPECT_EQ(named->roles[0].name, "trainer");
  EXPECT_EQ(named->roles[0].count, 2);
}

TEST(RunOptionsTest, SeveralNodesMeetAtTheMaster) {
  const auto options = Parse({.nnodes = "2:2",
                              .node_rank = "1",
                              .master_addr = "node0",
                              .master_port = "29501"});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->num_nodes, 2);
  EXPECT_EQ(options->node_rank, 1);
  ASSERT_TRUE(options->rendezvous.has_value());
  EXPECT_EQ(options->rendezvous->scheme, Scheme::kTcp);
  EXPECT_EQ(options->rendezvous->endpoint, (store::Endpoint{"node0", 29501}));
  EXPECT_EQ(options->master_port, std::nullopt);
}

TEST(RunOptionsTest, RendezvousEndpointIsAnAddressOrAStoreUrl) {
  const auto address = Parse({.nnodes = "2",
                              .node_rank = "0",
                              .master_port = "29501",
                              .rdzv_endpoint = "node0:29400"});
  ASSERT_THAT(address, IsOk());
  EXPECT_EQ(address->rendezvous->scheme, Scheme::kTcp);
  EXPECT_EQ(address->rendezvous->endpoint, (store::Endpoint{"node0", 29400}));
  EXPECT_EQ(address->master_port, 29501);
  const auto url = Parse({.rdzv_endpoint = "etcd://node9"});
  ASSERT_THAT(url, IsOk());
  EXPECT_EQ(url->rendezvous->scheme, Scheme::kEtcd);
  EXPECT_EQ(url->master_port, std::nullopt);
}

TEST(RunOptionsTest, LogsOfAllStreamsAreTheDefaultOfALogDirectory) {
  const auto logs = Parse({.log_dir = "/tmp/logs"});
  ASSERT_THAT(logs, IsOk());
  EXPECT_TRUE(logs->tee.Of(0).output && logs->tee.Of(0).error);
  const auto redirected = Parse({.log_dir = "/tmp/logs", .redirects = "0:1"});
  ASSERT_THAT(redirected, IsOk());
  EXPECT_TRUE(redirected->tee.empty());
  EXPECT_TRUE(redirected->redirects.Of(0).output);
}

TEST(RunOptionsTest, NumbersAreRead) {
  const auto options =
      Parse({.rdzv_id = "j1", .max_restarts = "3", .kill_delay = "30"});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->run_id, "j1");
  EXPECT_EQ(options->max_restarts, 3);
  EXPECT_EQ(options->kill_delay, absl::Seconds(30));
}

TEST(RunOptionsTest, WrongFlagIsNamedWithTheRemedy) {
  const struct {
    RunFlags flags;
    const char* error;
  } kCases[] = {
      {{.nproc_per_node = "0"}, "--nproc-per-node=0: must be a number from 1"},
      {{.nproc_per_node = "gpu"}, "--nproc-per-node=gpu: must be"},
      {{.nnodes = "1:4"}, "--nnodes=1:4: a job has a fixed number of nodes"},
      {{.nnodes = "x"}, "--nnodes=x: must be a number"},
      {{.nnodes = "2"}, "--nnodes=2 needs --node-rank"},
      {{.nnodes = "2", .node_rank = "2"}, "--node-rank=2: must be a number"},
      {{.nnodes = "2", .node_rank = "0", .standalone = true},
       "leave out --nnodes"},
      {{.standalone = true, .master_port = "1"}, "leave out --master-port"},
      {{.standalone = true, .rdzv_endpoint = "a:1"},
       "leave out --rdzv-endpoint"},
      {{.master_port = "70000"}, "--master-port=70000: must be"},
      {{.nnodes = "2", .node_rank = "0", .master_port = "0"},
       "--master-port=0: several nodes need"},
      {{.rdzv_endpoint = "x://y"}, "--rdzv-endpoint=x://y: "},
      {{.rdzv_endpoint = "file:///a?rank=1"}, "leave out rank"},
      {{.nnodes = "2", .node_rank = "0", .rdzv_endpoint = "a:0"},
       "several nodes need a port"},
      {{.rdzv_id = "a/b"}, "--rdzv-id=a/b: "},
      {{.max_restarts = "-1"}, "--max-restarts=-1: must be"},
      {{.role = "server=0"}, "'server=0' must be NAME=N"},
      {{.role = "a=1,a=2"}, "'a' occurs twice"},
      {{.role = "a=4096,b=1"}, "'b=1' must be NAME=N"},
      {{.nproc_per_node = "2", .role = "a=1"}, "leave out --nproc-per-node"},
      {{.redirects = "7"}, "--redirects=7: '7' is not 0, 1"},
      {{.tee = "0:7"}, "--tee=0:7: '0:7' is not 0, 1"},
      {{.kill_delay = "x"}, "--kill-delay=x: must be"},
  };
  for (const auto& [flags, error] : kCases) {
    EXPECT_THAT(Parse(flags),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)));
  }
  EXPECT_THAT(ParseRunFlags({}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the program is missing")));
}

}  // namespace
}  // namespace hawser::launch
