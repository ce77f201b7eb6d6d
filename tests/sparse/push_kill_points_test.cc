// Processes that are killed at each step of a push, with logged pushes.

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "store/grpc/server.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"
#include "tests/program.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

const int kServerKills = async::NightlyOr(1000, 48);
const int kTrainerKills = async::NightlyOr(200, 14);
constexpr int64_t kKeys = 1000;
const std::vector<std::string> kStages = {"received", "decoded", "logged",
                                          "applied", "replying"};

class PushKillPointsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(directory_);
    auto store = store::StoreServer::Start({});
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    launch::WorkerOptions options;
    options.identity = {.name = "test", .rank = 2};
    options.meeting_place.url = url();
    options.services.push_back(std::make_unique<ps::TableService>());
    auto worker = launch::Worker::Start(std::move(options));
    ASSERT_THAT(worker, IsOk());
    worker_ = *std::move(worker);
  }

  void TearDown() override { EXPECT_THAT(worker_->Shutdown(), IsOk()); }

  std::string url() const { return absl::StrCat("tcp://", store_->address()); }

  // Starts the server, which stops at `stage` of push number `pushes`.
  void StartServer(const std::string& stage, int pushes) {
    server_ = std::make_unique<Program>(
        "tests/sparse/table_server_program",
        std::vector<std::string>{"ps0", url(), directory_, stage,
                                 absl::StrCat(pushes)});
    ASSERT_TRUE(server_->WaitForError("serving")) << server_->Errors();
  }

  void CreateTable(const ps::TableStorage& storage = {}) {
    auto table = ps::Table::Create(worker_->agent(),
                                   {.name = "t",
                                    .width = 1,
                                    .rule = {"SGD", {{"lr", 1}}},
                                    .storage = storage},
                                   {"ps0"});
    ASSERT_THAT(table, IsOk());
    table_ = std::make_unique<ps::Table>(*std::move(table));
  }

  std::vector<float> Rows() {
    const auto rows = table_->Pull(keys_).Wait();
    EXPECT_THAT(rows, IsOk());
    return rows.ok() ? rows->ToVector<float>() : std::vector<float>();
  }

  static void Kill(Program& program) {
    ASSERT_EQ(::kill(program.pid(), SIGKILL), 0);
    program.Wait();
  }

  void ShutDownServer() {
    ASSERT_EQ(::kill(server_->pid(), SIGTERM), 0);
    EXPECT_EQ(server_->Wait(), 0) << server_->Errors();
  }

  const std::string directory_ =
      absl::StrCat(testing::TempDir(), "/push_kill_points");
  const Tensor keys_ = Tensor::Arange(kKeys, {.dtype = tensor::DType::kI64});
  std::unique_ptr<store::StoreServer> store_;
  std::unique_ptr<launch::Worker> worker_;
  std::unique_ptr<Program> server_;
  std::unique_ptr<ps::Table> table_;
};

// Adds 1 to all rows in each push, on a thread of its own.
class Pushing {
 public:
  Pushing(ps::Table table, Tensor keys)
      : table_(std::move(table)),
        keys_(std::move(keys)),
        thread_([this] { Run(); }) {}
  ~Pushing() { Stop().IgnoreError(); }

  // Waits for all pushes that were begun. Returns the first error.
  absl::Status Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return status_;
  }

  int64_t acknowledged() const { return acknowledged_; }
  void WaitForAcknowledgement() const {
    acknowledged_.wait(acknowledged_.load());
  }

 private:
  static constexpr size_t kUnderWay = 4;

  void Run() {
    const Tensor gradients = Tensor::Full({kKeys, 1}, -1);
    std::deque<async::Future<void>> under_way;
    while (!stop_ || !under_way.empty()) {
      if (!stop_ && under_way.size() < kUnderWay) {
        under_way.push_back(table_.Push(keys_, gradients));
        continue;
      }
      const absl::Status status = under_way.front().Wait();
      under_way.pop_front();
      status_.Update(status);
      if (!status.ok()) continue;
      ++acknowledged_;
      acknowledged_.notify_all();
    }
  }

  const ps::Table table_;
  const Tensor keys_;
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> acknowledged_ = 0;
  // Of the thread, until it ends.
  absl::Status status_;
  std::thread thread_;
};

class ServerKillPointsTest
    : public PushKillPointsTest,
      public testing::WithParamInterface<ps::TableStorage> {};

TEST_P(ServerKillPointsTest, AServerKilledAtAnyStepLosesAndRepeatsNothing) {
  StartServer(kStages[0], 0);
  CreateTable(GetParam());
  Pushing pushing(*table_, keys_);
  std::string last;
  for (int kill = 0; kill < kServerKills; ++kill) {
    const size_t step = static_cast<size_t>(kill) % (kStages.size() + 1);
    Kill(*server_);
    if (step < kStages.size()) {
      StartServer(kStages[step], 1 + kill % 4);
      ASSERT_TRUE(server_->WaitForError("stopped")) << server_->Errors();
    } else {
      StartServer(kStages[0], 0);
      pushing.WaitForAcknowledgement();
    }
    if (kill % 7 == 6 && step == kStages.size()) {
      const std::string name = absl::StrCat("kill-", kill);
      ASSERT_THAT(table_->Save(name, {.base = last}).Wait(), IsOk());
      last = kill % 4 == 0 ? "" : name;
    }
  }
  Kill(*server_);
  StartServer(kStages[0], 0);
  ASSERT_THAT(pushing.Stop(), IsOk());
  EXPECT_GE(pushing.acknowledged(), kServerKills / 2);
  EXPECT_EQ(Rows(), std::vector<float>(
                        kKeys, static_cast<float>(pushing.acknowledged())));
  ShutDownServer();
}

INSTANTIATE_TEST_SUITE_P(Tables, ServerKillPointsTest,
                         testing::Values(ps::TableStorage(),
                                         ps::TableStorage::RocksDb(kKeys / 10)),
                         [](const auto& test) {
                           return test.param.kind ==
                                          ps::TableStorage::Kind::kMemory
                                      ? "Memory"
                                      : "RocksDb";
                         });

TEST_F(PushKillPointsTest, APushOfAKilledTrainerIsAppliedWholeOrNotAtAll) {
  StartServer(kStages[0], 0);
  CreateTable();
  ShutDownServer();
  float before = 0;
  for (int kill = 0; kill < kTrainerKills; ++kill) {
    const size_t step = static_cast<size_t>(kill) % (kStages.size() + 2);
    const bool stops = step < kStages.size();
    const int pushes = 1 + kill % 3;
    StartServer(stops ? kStages[step] : kStages[0], stops ? pushes : 0);
    Program trainer("tests/sparse/pushing_trainer",
                    {absl::StrCat("trainer", kill), url(),
                     absl::StrCat(3 + kill), absl::StrCat(kKeys)});
    const auto count = [&](char letter) {
      const std::string output = trainer.Output();
      return std::count(output.begin(), output.end(), letter);
    };
    if (stops) {
      ASSERT_TRUE(server_->WaitForError("stopped")) << server_->Errors();
    } else {
      // Before a push is sent, or after it is acknowledged.
      const char letter = step == kStages.size() ? 's' : 'a';
      while (count(letter) < pushes) std::this_thread::yield();
    }
    Kill(trainer);
    const auto begun = static_cast<float>(count('s'));
    const auto acknowledged = static_cast<float>(count('a'));
    ASSERT_EQ(::kill(server_->pid(), SIGUSR1), 0);
    ShutDownServer();
    StartServer(kStages[0], 0);

    const std::vector<float> rows = Rows();
    ASSERT_EQ(rows.size(), kKeys);
    EXPECT_EQ(rows, std::vector<float>(kKeys, rows[0]));
    EXPECT_GE(rows[0], before + acknowledged);
    EXPECT_LE(rows[0], before + begun);
    // The server had read it.
    if (stops && step > 0) {
      EXPECT_EQ(rows[0], before + begun);
    }
    before = rows[0];
    ShutDownServer();
  }
}

}  // namespace
}  // namespace hawser::tests
