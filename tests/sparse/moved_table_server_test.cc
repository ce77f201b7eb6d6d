// A table that `hawser ps restore` moves to other servers, processes of their
// own, while a trainer pushes to it.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "nlohmann/json.hpp"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "store/grpc/server.h"
#include "tensor/tensor.h"
#include "tests/program.h"
#include "tests/sparse/pushing.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kKeys = 1000;

class MovedTableServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(directory_);
    auto store = store::StoreServer::Start({});
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    url_ = absl::StrCat("tcp://", store_->address());
    for (int i = 0; i < 3; ++i) StartServer(i);
    launch::WorkerOptions options;
    options.identity = {.name = "trainer", .rank = 9};
    options.meeting_place.url = url_;
    options.services.push_back(std::make_unique<ps::TableService>());
    auto trainer = launch::Worker::Start(std::move(options));
    ASSERT_THAT(trainer, IsOk());
    trainer_ = *std::move(trainer);
  }

  // Server "ps<i>", which shares the directory with the others.
  void StartServer(int i) {
    const std::string name = absl::StrCat("ps", i);
    servers_[i] = std::make_unique<Program>(
        "cli/hawser",
        std::vector<std::string>{
            "ps", absl::StrCat("--name=", name), absl::StrCat("--rank=", i + 1),
            absl::StrCat("--init=", url_),
            absl::StrCat("--snapshot-dir=", directory_), "--logging=write"});
    ASSERT_TRUE(
        servers_[i]->WaitForError(absl::StrCat("serving as '", name, "'")))
        << servers_[i]->Errors();
  }

  std::unique_ptr<Program> Start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "ps");
    arguments.push_back(absl::StrCat("--init=", url_));
    return std::make_unique<Program>("cli/hawser", arguments);
  }
  json Run(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const auto program = Start(std::move(arguments));
    EXPECT_EQ(program->Wait(), 0) << program->Errors();
    return json::parse(program->Output(), nullptr, /*allow_exceptions=*/false);
  }

  const std::string directory_ =
      absl::StrCat(testing::TempDir(), "/moved_table_server");
  std::unique_ptr<store::StoreServer> store_;
  std::string url_;
  std::map<int, std::unique_ptr<Program>> servers_;
  std::unique_ptr<launch::Worker> trainer_;
};

TEST_F(MovedTableServerTest, ATrainerGoesOnOnOtherServers) {
  auto table = ps::Table::Create(
      trainer_->agent(),
      {.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}}, {"ps0", "ps1"});
  ASSERT_THAT(table, IsOk());
  Pushing pushing(*table, kKeys);
  const auto push_for = [&](int ms) {
    pushing.Until(std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(ms));
  };
  push_for(50);
  pushing.Finish();
  const int64_t saved = pushing.acknowledged();
  Run({"snapshot", "t", "one"});
  push_for(50);
  // All rows have the same pushes afterwards: those of the snapshot, and those
  // that ended after the restore.
  const auto restore = Start({"restore", "t", "one", "--servers=ps2"});
  while (table->servers() == std::vector<std::string>{"ps0", "ps1"}) {
    push_for(10);
  }
  EXPECT_EQ(restore->Wait(), 0) << restore->Errors();
  // Either version may have acknowledged those that are under way.
  pushing.Finish();
  const int64_t lost = pushing.acknowledged();
  push_for(100);
  pushing.Finish();
  ASSERT_THAT(pushing.status(), IsOk());
  const auto rows = table->Pull(pushing.keys()).Wait();
  ASSERT_THAT(rows, IsOk());
  const std::vector<float> weights = rows->ToVector<float>();
  EXPECT_THAT(weights, Each(weights[0]));
  EXPECT_GE(weights[0],
            static_cast<float>(saved + pushing.acknowledged() - lost));
  EXPECT_LE(weights[0], static_cast<float>(pushing.acknowledged()));

  // A server that is dead during a move does not bring the table back.
  ASSERT_EQ(::kill(servers_[2]->pid(), SIGKILL), 0);
  servers_[2]->Wait();
  Run({"restore", "t", "one", "--servers=ps1,ps0"});
  StartServer(2);
  EXPECT_EQ(Run({"status", "--server=ps2"})[0]["tables"], 0);
  push_for(10);
  const json tables = Run({"tables"});
  EXPECT_EQ(tables[0]["servers"], json({"ps1", "ps0"}));
  EXPECT_EQ(tables[0]["state"], "complete");
  pushing.Finish();
  ASSERT_THAT(pushing.status(), IsOk());
  EXPECT_THAT(table->servers(), ElementsAre("ps1", "ps0"));
  // Nor do servers that held it before.
  for (const int i : {0, 1}) {
    ASSERT_EQ(::kill(servers_[i]->pid(), SIGKILL), 0);
    servers_[i]->Wait();
    StartServer(i);
  }
  push_for(10);
  pushing.Finish();
  ASSERT_THAT(pushing.status(), IsOk());
  EXPECT_EQ(Run({"tables"})[0]["state"], "complete");
}

}  // namespace
}  // namespace hawser::tests
