#include "launch/run/session.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/run/node.h"
#include "store/grpc/server.h"
#include "store/hash/store.h"
#include "store/open_store.h"
#include "store/store.h"
#include "store/testing/server_process.h"
#include "store/testing/temp_file_store.h"
#include "store/testing/test_server.h"

namespace hawser::launch {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

using Joined = absl::StatusOr<std::unique_ptr<Session>>;

// Longer than a busy machine keeps a thread from renewing it.
constexpr absl::Duration kLease = absl::Seconds(2);

SessionOptions OptionsOf(int node, int num_nodes = 2) {
  return {.run_id = "job",
          .node_rank = node,
          .self = {.host = absl::StrCat("host", node),
                   .roles = {{"worker", 1}},
                   .num_nodes = num_nodes,
                   .max_restarts = 0},
          .join_timeout = absl::Seconds(30),
          .lease_lifetime = kLease};
}

// Runs over each store through which launchers can meet.
class SessionTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "hash") {
      shared_ = std::make_shared<store::HashStore>();
    } else if (GetParam() == "file") {
      url_ = absl::StrCat("file://", directory_.File());
    } else if (GetParam() == "tcp") {
      server_ = store::MustStart();
      url_ = absl::StrCat("tcp://127.0.0.1:", server_->port());
    } else if (GetParam() == "redis") {
      redis_.emplace();
      url_ = absl::StrCat("redis://127.0.0.1:", redis_->port());
    } else {
      etcd_.emplace();
      url_ = absl::StrCat("etcd://127.0.0.1:", etcd_->port());
    }
  }

  // The store of one launcher.
  std::shared_ptr<store::Store> Open() {
    if (shared_ != nullptr) return shared_;
    auto store = store::OpenStore(url_);
    EXPECT_THAT(store, IsOk());
    return store.ok() ? *std::move(store) : nullptr;
  }

  // Launchers with these options join at once.
  std::vector<Joined> JoinAll(const std::vector<SessionOptions>& all) {
    std::vector<Joined> joined(all.size());
    std::vector<std::thread> launchers;
    for (size_t i = 0; i < all.size(); ++i) {
      launchers.emplace_back(
          [&, i] { joined[i] = Session::Join(Open(), all[i]); });
    }
    for (std::thread& launcher : launchers) launcher.join();
    return joined;
  }

 private:
  std::shared_ptr<store::Store> shared_;
  store::TempDir directory_;
  std::unique_ptr<store::StoreServer> server_;
  std::optional<store::internal::RedisProcess> redis_;
  std::optional<store::internal::EtcdProcess> etcd_;
  std::string url_;
};

TEST_P(SessionTest, NodesKnowEachOther) {
  const std::vector<Joined> joined =
      JoinAll({OptionsOf(0, 3), OptionsOf(1, 3), OptionsOf(2, 3)});
  for (const Joined& session : joined) {
    ASSERT_THAT(session, IsOk());
    ASSERT_EQ((*session)->nodes().size(), 3u);
    EXPECT_EQ((*session)->NameOf(2), "node 2 (host2)");
    EXPECT_EQ((*session)->Key("x"), (*joined[0])->Key("x"));
    EXPECT_THAT((*session)->CheckNodes(), IsOk());
  }
}

// Its launchers were killed: nobody has told the others that it has ended.
TEST_P(SessionTest, KeysOfAnEarlierJobAreNotTakenForThoseOfThis) {
  std::string earlier;
  {
    const std::vector<Joined> joined = JoinAll({OptionsOf(0), OptionsOf(1)});
    ASSERT_THAT(joined[0], IsOk());
    ASSERT_THAT(joined[1], IsOk());
    earlier = (*joined[0])->Key("outcome");
    ASSERT_THAT((*joined[0])->store().Set(earlier, "failed"), IsOk());
  }
  const std::vector<Joined> joined = JoinAll({OptionsOf(0), OptionsOf(1)});
  for (const Joined& session : joined) {
    ASSERT_THAT(session, IsOk());
    EXPECT_NE((*session)->Key("outcome"), earlier);
    EXPECT_THAT((*session)->CheckNodes(), IsOk());
  }
}

TEST_P(SessionTest, LauncherWithTheRankOfARunningNodeIsRefused) {
  const std::vector<Joined> joined = JoinAll({OptionsOf(0), OptionsOf(1)});
  ASSERT_THAT(joined[0], IsOk());
  ASSERT_THAT(joined[1], IsOk());
  for (const int node : {0, 1}) {
    EXPECT_THAT(JoinAll({OptionsOf(node)})[0],
                StatusIs(absl::StatusCode::kAlreadyExists,
                         HasSubstr(absl::StrCat(
                             "another launcher runs as node ", node,
                             " of a job with the --rdzv-id \"job\""))));
  }
  EXPECT_THAT((*joined[0])->CheckNodes(), IsOk());
  EXPECT_THAT((*joined[1])->CheckNodes(), IsOk());
}

TEST_P(SessionTest, OfTwoLaunchersThatJoinWithOneRankOneIsRefused) {
  const std::vector<Joined> joined =
      JoinAll({OptionsOf(0), OptionsOf(1), OptionsOf(1)});
  EXPECT_THAT(joined[0], IsOk());
  EXPECT_NE(joined[1].ok(), joined[2].ok());
  const Joined& refused = joined[1].ok() ? joined[2] : joined[1];
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kAlreadyExists,
                                HasSubstr("another launcher runs as node 1")));
}

TEST_P(SessionTest, VanishedNodeIsNamed) {
  std::vector<Joined> joined = JoinAll({OptionsOf(0), OptionsOf(1)});
  ASSERT_THAT(joined[0], IsOk());
  ASSERT_THAT(joined[1], IsOk());
  joined[1]->reset();
  absl::Status nodes;
  const absl::Time begin = absl::Now();
  while (nodes.ok() && absl::Now() - begin < absl::Seconds(30)) {
    nodes = (*joined[0])->CheckNodes();
  }
  EXPECT_THAT(nodes, StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("node 1 (host1) has vanished")));
}

TEST_P(SessionTest, NodesThatDoNotFitTogetherAreRefused) {
  const std::vector<Joined> joined =
      JoinAll({OptionsOf(0, 2), OptionsOf(1, 3)});
  for (const Joined& session : joined) {
    EXPECT_THAT(session,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--nnodes is 3 on node 1 and 2 on node 0")));
  }
}

TEST_P(SessionTest, MissingNodeIsNamed) {
  SessionOptions options = OptionsOf(0, 3);
  options.join_timeout = absl::Seconds(1);
  EXPECT_THAT(JoinAll({options})[0],
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("node 1, 2 of 3 has not joined within 1s")));
}

INSTANTIATE_TEST_SUITE_P(Stores, SessionTest,
                         testing::Values("hash", "file", "tcp", "redis",
                                         "etcd"),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace hawser::launch
