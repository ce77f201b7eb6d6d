// Jobs of several launchers, as on several machines.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "cli/testing/shell_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/credentials_options.h"
#include "net/testing/test_credentials.h"
#include "store/open_store.h"
#include "store/store.h"
#include "store/testing/server_process.h"
#include "tests/program.h"

namespace hawser::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The launcher of one of two nodes, which meet at `endpoint`.
std::unique_ptr<tests::Program> RunNode(int node, const std::string& endpoint,
                                        const std::string& script,
                                        const std::vector<std::string>& flags) {
  std::vector<std::string> all = {
      "--nnodes=2", absl::StrCat("--node-rank=", node),
      "--rdzv-endpoint=" + endpoint, "--kill-delay=1"};
  all.insert(all.end(), flags.begin(), flags.end());
  return RunShell(std::move(all), script);
}

struct TwoNodes {
  TwoNodes(const std::string& endpoint, const std::string& script,
           const std::vector<std::string>& flags = {})
      : launchers{RunNode(0, endpoint, script, flags),
                  RunNode(1, endpoint, script, flags)} {}
  std::unique_ptr<tests::Program> launchers[2];
};

// A file store as --rdzv-endpoint.
std::string FileEndpoint() {
  return absl::StrCat("file://", NewDirectory(), "/store");
}

TEST(RunNodesTest, LaunchersOfTwoNodesRunOneJob) {
  const Port port;
  const std::string endpoints[] = {absl::StrCat("127.0.0.1:", port.number()),
                                   FileEndpoint()};
  for (const std::string& endpoint : endpoints) {
    const TwoNodes nodes(endpoint,
                         "echo $RANK/$WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE "
                         "$MASTER_PORT",
                         {"--nproc-per-node=2", "--master-addr=127.0.0.1"});
    std::vector<std::string> ports;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(nodes.launchers[i]->Wait(), 0) << nodes.launchers[i]->Errors();
      const std::string output = nodes.launchers[i]->Output();
      for (int rank = 2 * i; rank < 2 * i + 2; ++rank) {
        EXPECT_THAT(output, HasSubstr(absl::StrCat("[rank ", rank, "] ", rank,
                                                   "/4 ", i, "/2 ")));
      }
      for (const std::string& line : Lines(output)) {
        ports.push_back(line.substr(line.rfind(' ')));
      }
    }
    ASSERT_EQ(ports.size(), 4u);
    EXPECT_THAT(ports, testing::Each(ports[0]));
  }
}

TEST(RunNodesTest, FailureOnOneNodeRestartsAllNodesAndThenEndsThem) {
  // Rank 1 fails once rank 0 has come up.
  const std::string script = absl::StrCat(
      "echo up $RANK $TORCHELASTIC_RESTART_COUNT; up=", NewDirectory(),
      "/$TORCHELASTIC_RESTART_COUNT; "
      "if [ $RANK = 0 ]; then : > $up; exec sleep 600; fi; "
      "until [ -e $up ]; do sleep 0.01; done; echo cause; exit 7");
  const TwoNodes nodes(FileEndpoint(), script,
                       {"--max-restarts=1", "--master-addr=127.0.0.1"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(nodes.launchers[i]->Wait(std::chrono::seconds(60)), 7);
    EXPECT_THAT(
        nodes.launchers[i]->Errors(),
        AllOf(HasSubstr("hawser: rank 1 (local rank 0)"),
              HasSubstr("restart 1 of at most 1"), HasSubstr("    cause\n")));
    EXPECT_THAT(nodes.launchers[i]->Output(),
                HasSubstr(absl::StrCat("up ", i, " 1\n")));
  }
}

TEST(RunNodesTest, SignalToOneLauncherEndsTheOther) {
  const TwoNodes nodes(FileEndpoint(), "echo up >&2; exec sleep 600",
                       {"--max-restarts=3", "--master-addr=127.0.0.1"});
  ASSERT_TRUE(nodes.launchers[0]->WaitForError("up"));
  ASSERT_TRUE(nodes.launchers[1]->WaitForError("up"));
  kill(nodes.launchers[1]->pid(), SIGTERM);
  for (const auto& launcher : nodes.launchers) {
    EXPECT_EQ(launcher->Wait(std::chrono::seconds(60)), 128 + SIGTERM);
    EXPECT_THAT(launcher->Errors(), HasSubstr("the launcher of node 1 ("));
  }
}

TEST(RunNodesTest, VanishedNodeIsNamed) {
  const Port port;
  // With the store in a file, and in the launcher that is killed.
  const TwoNodes file(FileEndpoint(), "echo up >&2; exec sleep 600",
                      {"--max-restarts=3", "--master-addr=127.0.0.1"});
  const TwoNodes tcp(absl::StrCat("127.0.0.1:", port.number()),
                     "echo up >&2; exec sleep 600", {"--max-restarts=3"});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(file.launchers[i]->WaitForError("up"));
    ASSERT_TRUE(tcp.launchers[i]->WaitForError("up"));
  }
  kill(file.launchers[1]->pid(), SIGKILL);
  kill(tcp.launchers[0]->pid(), SIGKILL);
  EXPECT_EQ(file.launchers[0]->Wait(std::chrono::seconds(60)), 1);
  EXPECT_THAT(file.launchers[0]->Errors(),
              AllOf(HasSubstr("node 1 ("), HasSubstr(" has vanished")));
  EXPECT_EQ(tcp.launchers[1]->Wait(std::chrono::seconds(60)), 1);
  EXPECT_THAT(tcp.launchers[1]->Errors(),
              AllOf(HasSubstr("node 0 ("), HasSubstr("has vanished")));
}

TEST(RunNodesTest, LauncherThatDiesBeforeTheJobBeginsIsReplaced) {
  const std::string endpoint = FileEndpoint();
  const std::vector<std::string> flags = {"--master-addr=127.0.0.1"};
  const std::string script = "echo up $RANK";
  const auto dead = RunNode(1, endpoint, script, flags);
  const auto store = store::OpenStore(endpoint);
  ASSERT_THAT(store, async::IsOk());
  ASSERT_THAT((*store)->Wait({{"launch/run/none/hello/1"}}), async::IsOk());
  kill(dead->pid(), SIGKILL);
  const TwoNodes nodes(endpoint, script, flags);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(nodes.launchers[i]->Wait(), 0) << nodes.launchers[i]->Errors();
    EXPECT_THAT(nodes.launchers[i]->Output(),
                HasSubstr(absl::StrCat("up ", i)));
  }
}

// Its processes have ended, those of the other node have not.
TEST(RunNodesTest, LauncherThatDiesAtTheEndIsNamed) {
  const std::string marker = absl::StrCat("60", getpid(), "7");
  const TwoNodes nodes(FileEndpoint(),
                       absl::StrCat("if [ $RANK = 0 ]; then exec sleep ",
                                    marker, "; fi; echo done >&2"),
                       {"--master-addr=127.0.0.1"});
  ASSERT_TRUE(nodes.launchers[1]->WaitForError("done"));
  kill(nodes.launchers[1]->pid(), SIGKILL);
  EXPECT_EQ(nodes.launchers[0]->Wait(std::chrono::seconds(60)), 1);
  EXPECT_THAT(nodes.launchers[0]->Errors(),
              AllOf(HasSubstr("node 1 ("), HasSubstr(" has vanished")));
  EXPECT_TRUE(tests::WaitUntilGone(ProcessesWith(marker)));
}

TEST(RunNodesTest, LaunchersMeetThroughRedisAndEtcd) {
  const store::internal::RedisProcess redis;
  const store::internal::EtcdProcess etcd;
  for (const std::string& endpoint :
       {absl::StrCat("redis://127.0.0.1:", redis.port()),
        absl::StrCat("etcd://127.0.0.1:", etcd.port())}) {
    const TwoNodes nodes(endpoint, "echo up $RANK/$WORLD_SIZE",
                         {"--master-addr=127.0.0.1"});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(nodes.launchers[i]->Wait(), 0) << nodes.launchers[i]->Errors();
      EXPECT_THAT(nodes.launchers[i]->Output(),
                  HasSubstr(absl::StrCat("up ", i, "/2")));
    }
  }
}

TEST(RunNodesTest, LaunchersMeetOverTls) {
  net::TestAuthority authority;
  net::TestAuthority other;
  const auto with_files = [](const net::CredentialsOptions& files) {
    setenv("HAWSER_TLS_CA", files.ca_path.c_str(), 1);
    setenv("HAWSER_TLS_CERT", files.certificate_path.c_str(), 1);
    setenv("HAWSER_TLS_KEY", files.key_path.c_str(), 1);
  };
  const auto run = [&](int node, net::TestAuthority& issuer,
                       const std::string& endpoint) {
    with_files(issuer.Issue(absl::StrCat("node", node)));
    return RunNode(node, endpoint, "echo up $RANK", {});
  };
  const absl::Cleanup without_files = [] {
    for (const char* name :
         {"HAWSER_TLS_CA", "HAWSER_TLS_CERT", "HAWSER_TLS_KEY"}) {
      unsetenv(name);
    }
  };
  const Port port;
  const std::string endpoint = absl::StrCat("127.0.0.1:", port.number());
  const auto first = run(0, authority, endpoint);
  const auto stranger = run(1, other, endpoint);
  EXPECT_NE(stranger->Wait(), 0);
  EXPECT_THAT(stranger->Errors(), HasSubstr("handshake"));
  const auto second = run(1, authority, endpoint);
  EXPECT_EQ(first->Wait(), 0) << first->Errors();
  EXPECT_EQ(second->Wait(), 0) << second->Errors();
  EXPECT_THAT(second->Output(), HasSubstr("up 1"));
}

}  // namespace
}  // namespace hawser::cli
