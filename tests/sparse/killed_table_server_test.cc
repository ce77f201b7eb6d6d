// A server of tables, a process of its own, that is killed while it applies
// pushes, and started again.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "store/grpc/server.h"
#include "tests/program.h"
#include "tests/sparse/pushing.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

// Each takes the time after which the name of a dead server can be taken.
const int kKills = async::NightlyOr(300, 6);
constexpr int64_t kKeys = 1000;

struct Case {
  const char* name;
  ps::TableStorage storage = {};
  ps::Retention retention = {};
};

class KilledTableServerTest : public testing::TestWithParam<Case> {};

TEST_P(KilledTableServerTest, LosesNoAcknowledgedPushAndAppliesNoneTwice) {
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/killed_table_server", GetParam().name);
  std::filesystem::remove_all(directory);
  const auto store = store::StoreServer::Start({});
  ASSERT_THAT(store, IsOk());
  const std::string url = absl::StrCat("tcp://", (*store)->address());
  const auto start_server = [&] {
    return std::make_unique<Program>(
        "cli/hawser",
        std::vector<std::string>{
            "ps", "--name=ps0", "--rank=1", absl::StrCat("--init=", url),
            absl::StrCat("--snapshot-dir=", directory),
            absl::StrCat("--disk-dir=", directory, "/.disk"),
            "--logging=write"});
  };
  std::unique_ptr<Program> server = start_server();

  launch::WorkerOptions options;
  options.identity = {.name = "trainer", .rank = 2};
  options.meeting_place.url = url;
  options.services.push_back(std::make_unique<ps::TableService>());
  const auto trainer = launch::Worker::Start(std::move(options));
  ASSERT_THAT(trainer, IsOk());
  ASSERT_TRUE(server->WaitForError("serving as 'ps0'")) << server->Errors();
  const auto table = ps::Table::Create((*trainer)->agent(),
                                       {.name = "t",
                                        .width = 1,
                                        .rule = {"SGD", {{"lr", 1}}},
                                        .retention = GetParam().retention,
                                        .storage = GetParam().storage},
                                       {"ps0"});
  ASSERT_THAT(table, IsOk());

  Pushing pushing(*table, kKeys);
  std::mt19937_64 random(1);
  std::string last;
  for (int kill = 0; kill < kKills; ++kill) {
    pushing.Until(std::chrono::steady_clock::now() +
                  std::chrono::microseconds(20'000 + random() % 100'000));
    if (kill % 3 == 2) {
      // A save does not wait for a server that starts again; a pull does.
      ASSERT_THAT(table->Pull(pushing.keys()).Wait(), IsOk());
      // Every third has all rows, the others what changed since.
      const std::string name = absl::StrCat("kill-", kill);
      if (kill % 9 == 2) last.clear();
      ASSERT_THAT(table->Save(name, {.base = last}).Wait(), IsOk());
      last = name;
    }
    ASSERT_EQ(::kill(server->pid(), SIGKILL), 0);
    server->Wait();
    server = start_server();
  }
  pushing.Until(std::chrono::steady_clock::now() +
                std::chrono::milliseconds(100));
  pushing.Finish();
  ASSERT_THAT(pushing.status(), IsOk());
  const auto rows = table->Pull(pushing.keys()).Wait();
  ASSERT_THAT(rows, IsOk());
  EXPECT_GT(pushing.acknowledged(), kKills);
  EXPECT_EQ(
      rows->ToVector<float>(),
      std::vector<float>(kKeys, static_cast<float>(pushing.acknowledged())));
  ASSERT_EQ(::kill(server->pid(), SIGTERM), 0);
  EXPECT_EQ(server->Wait(), 0) << server->Errors();
  EXPECT_THAT((*trainer)->Shutdown(), IsOk());
}

// A tenth of the rows in memory. Of the keys with retention none loses its row.
INSTANTIATE_TEST_SUITE_P(
    Tables, KilledTableServerTest,
    testing::Values(Case{"Memory"},
                    Case{"RocksDb", ps::TableStorage::RocksDb(kKeys / 10)},
                    Case{"RocksDbWithRetention",
                         ps::TableStorage::RocksDb(kKeys / 10),
                         {.ttl = absl::Hours(24), .max_rows = 10 * kKeys}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hawser::tests
