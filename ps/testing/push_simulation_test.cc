// Pushes under seeded loss, repetition, delay and reordering of messages,
// checked against the guarantees of docs/ps.md. To repeat one seed:
// rpc/testing/simulation_seeds.h.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
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
#include "rpc/agent/agent.h"
#include "rpc/inproc/network.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

constexpr int kSteps = 10;
// With files, which take most of the time.
constexpr int kStepsWithKills = 6;
// Keys of which a push has some, so that pushes overlap.
constexpr int64_t kKeys = 40;
// Weights that rows are given before the pushes.
constexpr float kInitial = 1000;

// The outcome of a push of the gradient -1 to some keys, with learning rate 1.
struct Push {
  std::vector<int64_t> keys;
  std::optional<absl::Status> status;
};

struct Faults {
  // Whether servers are killed and started again.
  bool kills = false;
};

class PushSimulation {
 public:
  PushSimulation(uint64_t seed, bool verbose, Faults faults)
      : faults_(faults),
        job_(seed, {.num_workers = 4,
                    .verbose = verbose,
                    .configure = [this](rpc::AgentOptions& options) {
                      options.services.push_back(
                          std::make_unique<TableService>(ServiceOptions()));
                    }}) {
    std::filesystem::remove_all(directory_);
  }
  ~PushSimulation() { std::filesystem::remove_all(directory_); }

  std::string Run() {
    job_.RestartDeparted();
    CreateTables();
    // Late messages of the assignment arrive under pushes.
    SetFaults(/*faulty=*/true);
    if (job_.failure().empty()) AssignRows();
    const int steps = faults_.kills ? kStepsWithKills : kSteps;
    for (int step = 0; step < steps && job_.failure().empty(); ++step) {
      if (faults_.kills) KillOrRestart();
      SetFaults(/*faulty=*/true);
      const uint64_t pushes = 1 + job_.random().Below(6);
      for (uint64_t i = 0; i < pushes; ++i) StartPush();
      job_.Advance(absl::Milliseconds(job_.random().Below(5000)));
    }
    SetFaults(/*faulty=*/false);
    if (faults_.kills) job_.ExpectConvergence();
    // All calls end by their timeouts, and late messages arrive.
    job_.Advance(absl::Minutes(3));
    if (job_.failure().empty()) CheckRows();
    return job_.failure();
  }

  // A push whose server is dead goes on when the server was started again.
  std::string RunOneRestart() {
    job_.RestartDeparted();
    CreateTables();
    AssignRows();
    StartPush();
    job_.Advance(absl::Seconds(1));
    job_.Kill(2);
    StartPush();
    job_.Advance(absl::Seconds(2));
    job_.RestartDeparted();
    job_.ExpectConvergence();
    job_.Advance(absl::Seconds(5));
    for (const auto& push : pushes_) {
      if (!push->status.has_value()) return "a push has not ended";
      if (!push->status->ok()) return std::string(push->status->message());
    }
    CheckRows();
    return job_.failure();
  }

 private:
  TableServiceOptions ServiceOptions() const {
    if (!faults_.kills) return {};
    return {.snapshot_directory = directory_, .logging = PushLogging::kWrite};
  }

  void KillOrRestart() {
    const int server = 2 + static_cast<int>(job_.random().Below(2));
    if (job_.agent(server) == nullptr) {
      job_.RestartDeparted();
    } else if (job_.random().Below(2) == 0) {
      job_.Kill(server);
    } else if (job_.random().Below(2) == 0) {
      // A snapshot under pushes. Its outcome does not matter.
      done_.push_back(tables_[0]
                          .Save(absl::StrCat("step-", pushes_.size()))
                          .Then([](const absl::StatusOr<TableSize>&) {}));
    }
  }

  rpc::InprocFaults RandomFaults() {
    const auto chance = [&] {
      return static_cast<double>(job_.random().Below(50)) / 100;
    };
    return {.drop_request = chance(),
            .drop_reply = chance(),
            .duplicate_request = chance(),
            .duplicate_reply = chance(),
            .max_delay = absl::Milliseconds(job_.random().Below(3000))};
  }

  void SetFaults(bool faulty) {
    for (const char* method : {"Push", "PushSums"}) {
      job_.network().SetMethodFaults(
          absl::StrCat("/hawser.v1.TableService/", method),
          faulty ? RandomFaults() : rpc::InprocFaults());
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

  // Worker 0 replaces the rows, and worker 1 assigns others to missing ones.
  void AssignRows() {
    const Tensor keys = Tensor::Arange(kKeys, {.dtype = tensor::DType::kI64});
    async::Future<void> missing = tables_[1].Assign(
        keys, Tensor::Full({kKeys, 2}, 7), {.keep_existing = true});
    absl::Status status = Await(std::move(missing));
    // The outcome of a call whose messages are lost for too long is unknown.
    while (status.ok() || absl::IsDeadlineExceeded(status)) {
      status =
          Await(tables_[0].Assign(keys, Tensor::Full({kKeys, 2}, kInitial)));
      if (status.ok()) return;
    }
    job_.Fail(absl::StrCat("rows were not assigned: ",
                           std::string(status.message())));
  }

  // Workers 0 and 1 push to a table on the workers 2 and 3.
  void CreateTables() {
    for (int client : {0, 1}) {
      absl::StatusOr<Table> table = Await(Table::CreateAsync(
          *job_.agent(client),
          {.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}},
          {"w2", "w3"}));
      if (!table.ok()) {
        job_.Fail(absl::StrCat("the table was not created: ",
                               std::string(table.status().message())));
        return;
      }
      tables_.push_back(*std::move(table));
    }
  }

  void StartPush() {
    auto push = std::make_shared<Push>();
    for (int64_t key = 0; key < kKeys; ++key) {
      if (job_.random().Below(5) == 0) push->keys.push_back(key);
    }
    const auto count = static_cast<int64_t>(push->keys.size());
    const Table& table = tables_[job_.random().Below(tables_.size())];
    const Tensor keys = Tensor::FromVector(push->keys, {count});
    const Tensor gradients = Tensor::Full({count, 2}, -1);
    async::Future<void> done;
    switch (job_.random().Below(3)) {
      case 0:
        done = table.Push(keys, gradients);
        break;
      case 1:
        done = table.PushSums(*keys.Reshape({count, 1}), gradients);
        break;
      default:
        done = table.PushPull(keys, gradients)
                   .Then([](const absl::StatusOr<Tensor>& rows) {
                     return rows.status();
                   });
    }
    done_.push_back(std::move(done).Then(
        [push](absl::Status status) { push->status = std::move(status); }));
    pushes_.push_back(std::move(push));
  }

  // G1: an acknowledged push was applied once to each of its rows. G2: any
  // other was applied at most once to each.
  void CheckRows() {
    std::vector<int64_t> keys(kKeys);
    for (int64_t key = 0; key < kKeys; ++key) keys[key] = key;
    const absl::StatusOr<Tensor> rows =
        Await(tables_[0].Pull(Tensor::FromVector(keys, {kKeys})));
    if (!rows.ok()) {
      job_.Fail(std::string(rows.status().message()));
      return;
    }
    std::vector<int64_t> least(kKeys);
    std::vector<int64_t> most(kKeys);
    for (const auto& push : pushes_) {
      if (!push->status.has_value()) {
        job_.Fail("a push has not ended");
        return;
      }
      for (int64_t key : push->keys) {
        ++most[key];
        if (push->status->ok()) ++least[key];
      }
    }
    const std::vector<float> weights = rows->ToVector<float>();
    for (int64_t key = 0; key < kKeys; ++key) {
      const auto applied = static_cast<int64_t>(weights[2 * key] - kInitial);
      if (applied >= least[key] && applied <= most[key] &&
          weights[2 * key] == weights[2 * key + 1]) {
        continue;
      }
      job_.Fail(absl::StrCat("row ", key, " has ", applied, " pushes of ",
                             least[key], " acknowledged and ", most[key],
                             " sent"));
    }
  }

  const Faults faults_;
  const std::string directory_ =
      absl::StrCat(testing::TempDir(), "/push_simulation");
  rpc::ClusterSimulation job_;
  std::vector<Table> tables_;
  std::vector<std::shared_ptr<Push>> pushes_;
  std::vector<async::Future<void>> done_;
};

using PushSeedsTest = rpc::SeedsTest;

TEST_P(PushSeedsTest, PushesAreAppliedExactlyOnce) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return PushSimulation(seed, verbose, {}).Run();
  });
}

TEST(PushSimulationTest, APushWaitsForTheRestartOfItsServer) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(PushSimulation(seed, /*verbose=*/false, {.kills = true})
                  .RunOneRestart(),
              "")
        << seed;
  }
}

TEST_P(PushSeedsTest, PushesSurviveTheEndOfServers) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return PushSimulation(seed, verbose, {.kills = true}).Run();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, PushSeedsTest,
                         testing::ValuesIn(rpc::SeedsOfCases()));

}  // namespace
}  // namespace hawser::ps
