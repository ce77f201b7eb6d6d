// Pushes to a table that is restored onto other servers again and again, under
// seeded loss, repetition, delay and reordering of messages, checked against
// the guarantees of docs/ps.md. To repeat one seed:
// rpc/testing/simulation_seeds.h.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "gtest/gtest.h"
#include "ps/storage/push_log.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/testing/push_digits.h"
#include "rpc/agent/agent.h"
#include "rpc/inproc/network.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

constexpr int kSteps = 12;
constexpr int kStepsWithKills = 8;
constexpr int64_t kKeys = 40;
constexpr int64_t kWidth = 8;
constexpr int64_t kMaxPushes = kWidth * kPushesPerWeight;
// Workers from this one on are servers.
constexpr int kFirstServer = 2;
constexpr int kNumServers = 5;

struct Push {
  std::vector<int64_t> keys;
  // Whether it began after the last restore had ended.
  bool of_this_version = true;
  std::optional<absl::Status> status;
};

class MoveSimulation {
 public:
  MoveSimulation(uint64_t seed, bool verbose, bool kills)
      : kills_(kills),
        job_(seed, {.num_workers = kFirstServer + kNumServers,
                    .verbose = verbose,
                    .configure = [this](rpc::AgentOptions& options) {
                      options.services.push_back(
                          std::make_unique<TableService>(TableServiceOptions{
                              .snapshot_directory = directory_,
                              .logging = kills_ ? PushLogging::kWrite
                                                : PushLogging::kOff}));
                    }}) {
    std::filesystem::remove_all(directory_);
  }
  ~MoveSimulation() { std::filesystem::remove_all(directory_); }

  std::string Run() {
    job_.RestartDeparted();
    CreateTables();
    const int steps = kills_ ? kStepsWithKills : kSteps;
    for (int step = 0; step < steps && job_.failure().empty(); ++step) {
      if (kills_) KillOrRestart();
      SetFaults(/*faulty=*/true);
      const uint64_t pushes = 1 + job_.random().Below(5);
      for (uint64_t i = 0; i < pushes; ++i) StartPush();
      SaveOrRestore();
      job_.Advance(absl::Milliseconds(job_.random().Below(5000)));
    }
    SetFaults(/*faulty=*/false);
    if (kills_) job_.ExpectConvergence();
    // All calls end by their timeouts, and late messages arrive.
    job_.Advance(absl::Minutes(3));
    if (changing_) job_.Fail("a save or restore has not ended");
    if (job_.failure().empty()) PushAtTheEnd();
    if (job_.failure().empty()) CheckRows();
    if (job_.failure().empty()) CheckServers();
    return job_.failure();
  }

  // A push that two of three servers have applied when they are saved, and
  // whose replies are lost, is sent again to the server onto which the table is
  // restored, and applied there to the rows that do not have it.
  std::string RunPushUnderWay() {
    job_.RestartDeparted();
    CreateTables();
    job_.network().SetMethodFaults("/hawser.v1.TableService/Push",
                                   {.drop_reply = 1});
    job_.Block(0, kFirstServer + 2, true);
    StartPush();
    job_.Advance(absl::Seconds(1));
    const auto saved = Await(tables_[1].Save("one"));
    if (!saved.ok()) return std::string(saved.status().message());
    const auto moved =
        Await(Table::RestoreAsync(*job_.agent(1), "t", "one", {"w5", "w6"}));
    if (!moved.ok()) return std::string(moved.status().message());
    job_.Block(0, kFirstServer + 2, false);
    SetFaults(/*faulty=*/false);
    job_.Advance(absl::Minutes(1));
    const auto& push = *pushes_[0];
    if (!push.status.has_value()) return "the push has not ended";
    if (!push.status->ok()) return std::string(push.status->message());
    CheckRows();
    if (tables_[0].servers() != std::vector<std::string>{"w5", "w6"}) {
      return "the handle has not followed";
    }
    return job_.failure();
  }

 private:
  // Pushes that a version of the table has, and the snapshot.
  struct Snapshot {
    std::string name;
    std::set<size_t> pushes;
  };

  void KillOrRestart() {
    const int server =
        kFirstServer + static_cast<int>(job_.random().Below(kNumServers));
    if (job_.agent(server) == nullptr) {
      job_.RestartDeparted();
    } else if (job_.random().Below(2) == 0) {
      job_.Kill(server);
    }
  }

  rpc::InprocFaults RandomFaults() {
    const auto chance = [&] {
      return static_cast<double>(job_.random().Below(40)) / 100;
    };
    return {.drop_request = chance(),
            .drop_reply = chance(),
            .duplicate_request = chance(),
            .duplicate_reply = chance(),
            .max_delay = absl::Milliseconds(job_.random().Below(3000))};
  }

  void SetFaults(bool faulty) {
    const auto set = [&](const char* method, const rpc::InprocFaults& faults) {
      job_.network().SetMethodFaults(
          absl::StrCat("/hawser.v1.TableService/", method),
          faulty ? faults : rpc::InprocFaults());
    };
    for (const char* method : {"Push", "PushSums", "Pull"}) {
      set(method, RandomFaults());
    }
    // These wait for files, and are not sent again for an hour.
    for (const char* method : {"SaveTable", "RestoreTable", "DropTable"}) {
      rpc::InprocFaults faults = RandomFaults();
      faults.drop_request = 0;
      faults.drop_reply = 0;
      set(method, faults);
    }
  }

  // Runs until the future is ready.
  template <class T>
  async::Result<T> Await(async::Future<T> future) {
    for (int i = 0; i < 1000 && !future.ready(); ++i) {
      job_.Advance(absl::Milliseconds(100));
    }
    if (!future.ready()) return absl::DeadlineExceededError("the future");
    return std::move(future).Wait();
  }

  void CreateTables() {
    for (int client : {0, 1}) {
      absl::StatusOr<Table> table = Await(Table::CreateAsync(
          *job_.agent(client),
          {.name = "t", .width = kWidth, .rule = {"SGD", {{"lr", 1}}}},
          {"w2", "w3", "w4"}));
      if (!table.ok()) {
        job_.Fail(absl::StrCat("the table was not created: ",
                               std::string(table.status().message())));
        return;
      }
      tables_.push_back(*std::move(table));
    }
  }

  void StartPush() {
    const auto number = static_cast<int64_t>(pushes_.size());
    if (number == kMaxPushes) return;
    auto push = std::make_shared<Push>();
    std::vector<float> gradients;
    for (int64_t key = 0; key < kKeys; ++key) {
      if (job_.random().Below(3) != 0) continue;
      push->keys.push_back(key);
      const std::vector<float> gradient = GradientOfPush(number, kWidth);
      gradients.insert(gradients.end(), gradient.begin(), gradient.end());
    }
    const auto count = static_cast<int64_t>(push->keys.size());
    const Table& table = tables_[job_.random().Below(tables_.size())];
    const Tensor keys = Tensor::FromVector(push->keys, {count});
    const Tensor values = Tensor::FromVector(gradients, {count, kWidth});
    async::Future<void> done;
    switch (job_.random().Below(3)) {
      case 0:
        done = table.Push(keys, values);
        break;
      case 1:
        done = table.PushSums(*keys.Reshape({count, 1}), values);
        break;
      default:
        done = table.PushPull(keys, values)
                   .Then([](const absl::StatusOr<Tensor>& rows) {
                     return rows.status();
                   });
    }
    done_.push_back(std::move(done).Then(
        [push](absl::Status status) { push->status = std::move(status); }));
    pushes_.push_back(std::move(push));
  }

  // Pushes that the table has for sure.
  std::set<size_t> PushesOfTable() const {
    std::set<size_t> pushes = restored_;
    for (size_t i = 0; i < pushes_.size(); ++i) {
      const Push& push = *pushes_[i];
      if (push.of_this_version && push.status.has_value() &&
          push.status->ok()) {
        pushes.insert(i);
      }
    }
    return pushes;
  }

  void SaveOrRestore() {
    if (changing_ || job_.random().Below(2) == 0) return;
    changing_ = true;
    if (!snapshot_.has_value() || job_.random().Below(2) == 0) {
      Snapshot snapshot{absl::StrCat("s", ++num_changes_), PushesOfTable()};
      done_.push_back(
          tables_[0]
              .Save(snapshot.name)
              .Then([this, snapshot](const absl::StatusOr<TableSize>& saved) {
                if (saved.ok()) snapshot_ = snapshot;
                changing_ = false;
              }));
      return;
    }
    std::vector<std::string> servers;
    for (int i = 0; i < kNumServers; ++i) {
      servers.push_back(absl::StrCat("w", kFirstServer + i));
    }
    for (size_t i = servers.size(); i > 1; --i) {
      std::swap(servers[i - 1], servers[job_.random().Below(i)]);
    }
    servers.resize(1 + job_.random().Below(kNumServers));
    done_.push_back(
        Table::RestoreAsync(*job_.agent(1), "t", snapshot_->name, servers)
            .Then([this, used = snapshot_->pushes](
                      const absl::StatusOr<Table>& restored) {
              // After an error the table may be of either version.
              std::set<size_t> kept = used;
              if (!restored.ok()) {
                const std::set<size_t> held = PushesOfTable();
                std::erase_if(
                    kept, [&](size_t push) { return !held.contains(push); });
              }
              restored_ = std::move(kept);
              for (const auto& push : pushes_) push->of_this_version = false;
              changing_ = false;
            }));
  }

  // Handles follow, also those that were not used for a while.
  void PushAtTheEnd() {
    const Tensor keys = Tensor::Arange(kKeys, {.dtype = tensor::DType::kI64});
    for (const Table& table : tables_) {
      const absl::Status status = Await(table.Push(
          keys, Tensor::FromVector(std::vector<float>(kKeys * kWidth),
                                   {kKeys, kWidth})));
      if (!status.ok()) {
        job_.Fail(absl::StrCat("a handle has not followed: ",
                               std::string(status.message())));
      }
    }
  }

  // Each push is in a row at most once, and in all its rows if the table must
  // have it.
  void CheckRows() {
    const absl::StatusOr<Tensor> rows = Await(
        tables_[0].Pull(Tensor::Arange(kKeys, {.dtype = tensor::DType::kI64})));
    if (!rows.ok()) {
      job_.Fail(std::string(rows.status().message()));
      return;
    }
    const std::vector<float> weights = rows->ToVector<float>();
    std::vector<std::map<int64_t, int64_t>> applied;
    for (int64_t key = 0; key < kKeys; ++key) {
      applied.push_back(PushesInRow(std::span(weights).subspan(
          static_cast<size_t>(key * kWidth), kWidth)));
      for (const auto& [push, count] : applied.back()) {
        if (count == 1) continue;
        job_.Fail(absl::StrCat("push ", push, " was applied ", count,
                               " times to row ", key));
      }
    }
    for (const size_t push : PushesOfTable()) {
      for (const int64_t key : pushes_[push]->keys) {
        if (applied[static_cast<size_t>(key)].contains(
                static_cast<int64_t>(push))) {
          continue;
        }
        job_.Fail(absl::StrCat("push ", push, " is not in row ", key));
      }
    }
  }

  // Other servers have dropped the table.
  void CheckServers() {
    const std::vector<std::string> servers = tables_[0].servers();
    for (int i = 0; i < kNumServers; ++i) {
      const int worker = kFirstServer + i;
      const bool holds = std::count(servers.begin(), servers.end(),
                                    absl::StrCat("w", worker)) > 0;
      const std::string tables = job_.agent(worker)->DebugInfo()["ps.tables"];
      if (tables == (holds ? "1" : "0")) continue;
      job_.Fail(absl::StrCat("w", worker, " has ", tables, " tables"));
    }
  }

  const bool kills_;
  const std::string directory_ =
      absl::StrCat(testing::TempDir(), "/move_simulation");
  rpc::ClusterSimulation job_;
  std::vector<Table> tables_;
  std::vector<std::shared_ptr<Push>> pushes_;
  std::vector<async::Future<void>> done_;
  // Whether a save or restore is under way.
  bool changing_ = false;
  int num_changes_ = 0;
  std::optional<Snapshot> snapshot_;
  // Pushes that the last restore has brought.
  std::set<size_t> restored_;
};

TEST(MoveSimulationTest, APushUnderWayIsAppliedOnceToTheRestoredTable) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(MoveSimulation(seed, /*verbose=*/false, /*kills=*/false)
                  .RunPushUnderWay(),
              "")
        << seed;
  }
}

using MoveSeedsTest = rpc::SeedsTest;

TEST_P(MoveSeedsTest, HandlesFollowATable) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return MoveSimulation(seed, verbose, /*kills=*/false).Run();
  });
}

TEST_P(MoveSeedsTest, HandlesFollowATableWhoseServersEnd) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return MoveSimulation(seed, verbose, /*kills=*/true).Run();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, MoveSeedsTest,
                         testing::ValuesIn(rpc::SeedsOfCases()));

}  // namespace
}  // namespace hawser::ps
