// A server of tables, a process of its own, that leaves its job after SIGTERM
// while it applies pushes.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"
#include "tensor/tensor.h"
#include "tests/program.h"
#include "tests/sparse/metrics_page.h"
#include "tests/sparse/pushing.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr int64_t kKeys = 1000;

// Calls `done` until it returns true; false after a minute.
bool WaitUntil(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    if (done()) return true;
  }
  return false;
}

class DrainedTableServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(directory_);
    auto store = store::StoreServer::Start({});
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    url_ = absl::StrCat("tcp://", store_->address());
  }

  std::unique_ptr<Program> StartServer() const {
    return std::make_unique<Program>(
        "cli/hawser",
        std::vector<std::string>{
            "ps", "--name=ps0", "--rank=1", absl::StrCat("--init=", url_),
            absl::StrCat("--snapshot-dir=", directory_), "--logging=write"});
  }
  // Stops before the reply to the push of that number, until SIGUSR1.
  std::unique_ptr<Program> StartStoppingServer(int push) const {
    return std::make_unique<Program>(
        "tests/sparse/table_server_program",
        std::vector<std::string>{"ps0", url_, directory_, "logged",
                                 absl::StrCat(push)});
  }

  void StartTrainer() {
    launch::WorkerOptions options;
    options.identity = {.name = "trainer", .rank = 2};
    options.meeting_place.url = url_;
    options.services.push_back(std::make_unique<ps::TableService>());
    auto trainer = launch::Worker::Start(std::move(options));
    ASSERT_THAT(trainer, IsOk());
    trainer_ = *std::move(trainer);
  }
  ps::Table CreateTable() {
    auto table = ps::Table::Create(
        trainer_->agent(),
        {.name = "t", .width = 1, .rule = {"SGD", {{"lr", 1}}}}, {"ps0"});
    EXPECT_THAT(table, IsOk());
    return *std::move(table);
  }

  const std::string directory_ =
      absl::StrCat(testing::TempDir(), "/drained_table_server");
  std::unique_ptr<store::StoreServer> store_;
  std::string url_;
  std::unique_ptr<launch::Worker> trainer_;
};

TEST_F(DrainedTableServerTest, ServersThatRestartOneAfterAnotherLoseNoPush) {
  std::unique_ptr<Program> server = StartServer();
  StartTrainer();
  ASSERT_TRUE(server->WaitForError("serving as 'ps0'")) << server->Errors();
  const ps::Table table = CreateTable();
  Pushing pushing(table, kKeys);
  constexpr int kRestarts = 8;
  for (int restart = 0; restart < kRestarts; ++restart) {
    pushing.Until(std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(30));
    ASSERT_EQ(::kill(server->pid(), SIGTERM), 0);
    ASSERT_EQ(server->Wait(), 0) << server->Errors();
    server = StartServer();
    ASSERT_TRUE(server->WaitForError("serving as 'ps0'")) << server->Errors();
  }
  pushing.Until(std::chrono::steady_clock::now());
  pushing.Finish();
  ASSERT_THAT(pushing.status(), IsOk());
  const auto rows = table.Pull(pushing.keys()).Wait();
  ASSERT_THAT(rows, IsOk());
  EXPECT_GT(pushing.acknowledged(), kRestarts);
  EXPECT_EQ(
      rows->ToVector<float>(),
      std::vector<float>(kKeys, static_cast<float>(pushing.acknowledged())));
}

TEST_F(DrainedTableServerTest, APushUnderWayEndsAfterTheServerIsNotServing) {
  std::unique_ptr<Program> server = StartStoppingServer(/*push=*/2);
  StartTrainer();
  ASSERT_TRUE(server->WaitForError("serving")) << server->Errors();
  const std::string address = trainer_->agent().FindWorker("ps0")->address;
  const ps::Table table = CreateTable();
  const Tensor key = Tensor::Arange(1, {.dtype = tensor::DType::kI64});
  const Tensor gradient = Tensor::Full({1, 1}, -1);
  ASSERT_THAT(table.Push(key, gradient).Wait(), IsOk());
  const async::Future<void> held = table.Push(key, gradient);
  ASSERT_TRUE(server->WaitForError("stopped")) << server->Errors();
  ASSERT_EQ(::kill(server->pid(), SIGTERM), 0);
  EXPECT_TRUE(WaitUntil([&] {
    Program health("cli/hawser", {"health", address});
    health.Wait();
    return health.Output() == absl::StrCat(address, " NOT_SERVING\n");
  }));
  // For the server that follows.
  const async::Future<void> next = table.Push(key, gradient);
  ASSERT_EQ(::kill(server->pid(), SIGUSR1), 0);
  EXPECT_EQ(server->Wait(), 0) << server->Errors();
  server = StartServer();
  EXPECT_THAT(held.Wait(), IsOk());
  EXPECT_THAT(next.Wait(), IsOk());
  const auto row = table.Pull(key).Wait();
  ASSERT_THAT(row, IsOk());
  EXPECT_EQ(row->ToVector<float>(), std::vector<float>{3});
}

TEST_F(DrainedTableServerTest, ASecondSignalEndsAServerWhosePushIsStuck) {
  std::unique_ptr<Program> server = StartStoppingServer(/*push=*/2);
  StartTrainer();
  ASSERT_TRUE(server->WaitForError("serving")) << server->Errors();
  const std::string address = trainer_->agent().FindWorker("ps0")->address;
  const ps::Table table = CreateTable();
  const Tensor key = Tensor::Arange(1, {.dtype = tensor::DType::kI64});
  const Tensor gradient = Tensor::Full({1, 1}, -1);
  ASSERT_THAT(table.Push(key, gradient).Wait(), IsOk());
  const async::Future<void> stuck = table.Push(key, gradient);
  ASSERT_TRUE(server->WaitForError("stopped")) << server->Errors();
  ASSERT_EQ(::kill(server->pid(), SIGTERM), 0);
  ASSERT_TRUE(WaitUntil([&] {
    Program health("cli/hawser", {"health", address});
    health.Wait();
    return health.Output() == absl::StrCat(address, " NOT_SERVING\n");
  }));
  ASSERT_EQ(::kill(server->pid(), SIGTERM), 0);
  EXPECT_EQ(server->Wait(std::chrono::seconds(20)), 2) << server->Errors();
  // It was logged.
  server = StartServer();
  EXPECT_THAT(stuck.Wait(), IsOk());
  const auto row = table.Pull(key).Wait();
  ASSERT_THAT(row, IsOk());
  EXPECT_EQ(row->ToVector<float>(), std::vector<float>{2});
}

TEST_F(DrainedTableServerTest, ASecondSignalEndsTheWaitForOtherWorkers) {
  Program server("cli/hawser",
                 {"ps", "--name=ps0", "--rank=1", "--metrics-addr=127.0.0.1:0",
                  absl::StrCat("--init=", url_, "?world_size=2")});
  const auto client = store::GrpcStore::Connect({.address = store_->address()});
  ASSERT_THAT(client, IsOk());
  launch::WorkerOptions options;
  options.identity = {.name = "trainer", .rank = 0, .world_size = 2};
  options.meeting_place.store = client->get();
  auto trainer = launch::Worker::Start(std::move(options));
  ASSERT_THAT(trainer, IsOk());
  ASSERT_TRUE(server.WaitForError("serving as 'ps0'")) << server.Errors();
  const int port = MetricsPort(server.Errors());
  EXPECT_THAT(Get(port, "/readyz"), EndsWith("ready\n"));
  ASSERT_EQ(::kill(server.pid(), SIGTERM), 0);
  ASSERT_TRUE(WaitUntil([&] {
    return testing::Matches(EndsWith("leaving\n"))(Get(port, "/readyz"));
  }));
  ASSERT_EQ(::kill(server.pid(), SIGTERM), 0);
  EXPECT_EQ(server.Wait(std::chrono::seconds(20)), 2);
  EXPECT_THAT(server.Errors(), HasSubstr("was shut down before"));
  EXPECT_THAT((*trainer)->Shutdown(/*graceful=*/false), IsOk());
}

}  // namespace
}  // namespace hawser::tests
