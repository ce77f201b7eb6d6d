// Trainers of a table under seeded loss, repetition, delay and reordering of
// messages, and the ends of trainers and servers: what each pull sees is
// checked against the consistency of the table. To repeat one seed:
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
#include "ps/storage/consistency.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/push_log.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/testing/history_checker.h"
#include "ps/testing/push_digits.h"
#include "ps/worker_clock.h"
#include "rpc/agent/agent.h"
#include "rpc/inproc/network.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// Workers 0 to 2 train a table on the workers 3 and 4.
constexpr int kTrainers = 3;
constexpr int kWorkers = 5;
constexpr int kSteps = 5;
constexpr int kRounds = 8;
constexpr int64_t kKeys = 5;
constexpr int64_t kWidth = 16;

struct Faults {
  bool trainers_end = false;
  // Servers then log pushes, and are started again.
  bool servers_end = false;
};

// A trainer: pulls, pushes, and advances its clock, step by step.
struct Trainer {
  int worker = 0;
  int steps = 0;
  // Its number in the history, which a membership has.
  std::optional<int> id = std::nullopt;
  std::optional<async::Future<Table>> creating = std::nullopt;
  std::optional<Table> table = std::nullopt;
  std::optional<async::Future<WorkerClock>> joining = std::nullopt;
  std::optional<WorkerClock> clock = std::nullopt;
  // Completes when the history has the pull.
  std::optional<async::Future<void>> pull = std::nullopt;
  std::optional<async::Future<void>> leaving = std::nullopt;
  bool done = false;
};

class ClockSimulation {
 public:
  ClockSimulation(uint64_t seed, bool verbose, const TableSpec& spec,
                  Faults faults)
      : faults_(faults),
        spec_(spec),
        consistency_(spec.consistency),
        history_(spec.consistency),
        job_(seed, {.num_workers = kWorkers,
                    .verbose = verbose,
                    .configure = [this](rpc::AgentOptions& options) {
                      options.services.push_back(
                          std::make_unique<TableService>(ServiceOptions()));
                    }}) {
    std::filesystem::remove_all(directory_);
    trainers_.resize(kTrainers);
    for (int i = 0; i < kTrainers; ++i) trainers_[i].worker = i;
  }
  ~ClockSimulation() { std::filesystem::remove_all(directory_); }

  std::string Run() {
    job_.RestartDeparted();
    for (int round = 0; round < kRounds && Failure().empty(); ++round) {
      SetFaults(true);
      EndAWorker();
      for (int tick = 0; tick < 4; ++tick) {
        for (Trainer& trainer : trainers_) Proceed(trainer);
        job_.Advance(absl::Milliseconds(job_.random().Below(1000)));
      }
    }
    SetFaults(false);
    job_.ExpectConvergence();
    for (int tick = 0; tick < 600 && !AllDone() && Failure().empty(); ++tick) {
      for (Trainer& trainer : trainers_) Proceed(trainer);
      job_.Advance(absl::Milliseconds(500));
    }
    // All calls end by their timeouts, and late messages arrive.
    job_.Advance(absl::Minutes(3));
    if (Failure().empty()) CheckEnd();
    return Failure();
  }

 private:
  std::string Failure() const {
    return history_.failure().empty() ? job_.failure() : history_.failure();
  }

  TableServiceOptions ServiceOptions() const {
    TableServiceOptions options;
    if (faults_.servers_end) {
      options.snapshot_directory = directory_;
      options.logging = PushLogging::kWrite;
    }
    if (spec_.storage.kind == TableStorage::Kind::kRocksDb) {
      options.disk = std::make_shared<RocksDbStorage>(directory_ + "/.disk");
    }
    return options;
  }

  void SetFaults(bool faults) {
    for (const char* method :
         {"Pull", "Push", "JoinClock", "AdvanceClock", "LeaveClock"}) {
      const auto chance = [&] {
        return static_cast<double>(job_.random().Below(40)) / 100;
      };
      rpc::InprocFaults drawn;
      if (faults) {
        drawn = {.drop_request = chance(),
                 .drop_reply = chance(),
                 .duplicate_request = chance(),
                 .duplicate_reply = chance(),
                 .max_delay = absl::Milliseconds(job_.random().Below(3000))};
      }
      job_.network().SetMethodFaults(
          absl::StrCat("/hawser.v1.TableService/", method), drawn);
    }
  }

  void EndAWorker() {
    std::vector<int> candidates;
    if (faults_.trainers_end) candidates = {0, 1, 2};
    if (faults_.servers_end) {
      candidates.insert(candidates.end(), {kTrainers, kTrainers + 1});
    }
    if (candidates.empty()) return;
    const int worker = candidates[job_.random().Below(candidates.size())];
    if (job_.agent(worker) == nullptr) {
      job_.RestartDeparted();
    } else if (job_.random().Below(2) == 0) {
      if (worker < kTrainers) GiveUp(trainers_[worker]);
      job_.Kill(worker);
    } else if (faults_.servers_end && trainers_[0].table.has_value() &&
               job_.agent(0) != nullptr) {
      // A snapshot begins the next log. Its outcome does not matter: that on
      // which it is based may have failed.
      const std::string name = absl::StrCat("s", done_.size());
      SaveOptions options;
      if (job_.random().Below(3) > 0) options.base = last_snapshot_;
      done_.push_back(trainers_[0]
                          .table->Save(name, options)
                          .Then([](const absl::StatusOr<TableSize>&) {}));
      last_snapshot_ = name;
    }
  }

  bool AllDone() const {
    for (const Trainer& trainer : trainers_) {
      if (!trainer.done) return false;
    }
    return true;
  }

  // The membership ends, wherever it is.
  void GiveUp(Trainer& trainer) {
    if (trainer.id.has_value()) history_.Lose(*trainer.id);
    const int steps = trainer.steps;
    const bool done = trainer.done;
    const int worker = trainer.worker;
    trainer = {.worker = worker, .steps = steps, .done = done};
  }

  void Proceed(Trainer& trainer) {
    rpc::Agent* const agent = job_.agent(trainer.worker);
    if (agent == nullptr || trainer.done) return;
    if (!trainer.table.has_value()) {
      Create(trainer, *agent);
    } else if (!trainer.id.has_value()) {
      Join(trainer);
    } else if (trainer.leaving.has_value()) {
      if (!trainer.leaving->ready()) return;
      trainer.done = true;
      if (!trainer.leaving->result().ok()) history_.Lose(*trainer.id);
    } else if (!trainer.pull.has_value()) {
      Pull(trainer);
    } else if (trainer.pull->ready()) {
      if (trainer.pull->result().ok()) {
        EndStep(trainer);
      } else {
        job_.Note(
            absl::StrCat("gives up: ", trainer.pull->result().ToString()));
        GiveUp(trainer);
      }
    }
  }

  void Create(Trainer& trainer, rpc::Agent& agent) {
    if (!trainer.creating.has_value()) {
      trainer.creating = Table::CreateAsync(agent, spec_, {"w3", "w4"});
    } else if (trainer.creating->ready()) {
      if (trainer.creating->result().ok()) {
        trainer.table = *trainer.creating->result();
      }
      trainer.creating.reset();
    }
  }

  void Join(Trainer& trainer) {
    if (!consistency_.clocked()) {
      Begin(trainer, 0);
    } else if (!trainer.joining.has_value()) {
      trainer.joining =
          WorkerClock::JoinAsync({*trainer.table}, {.num_workers = kTrainers});
    } else if (trainer.joining->ready()) {
      if (trainer.joining->result().ok()) {
        trainer.clock = *trainer.joining->result();
        Begin(trainer, trainer.clock->clock());
      }
      trainer.joining.reset();
    }
  }

  void Begin(Trainer& trainer, int64_t clock) {
    trainer.id = next_id_++;
    history_.Join(*trainer.id, clock);
    job_.Note(absl::StrCat("worker ", trainer.worker, " is trainer ",
                           *trainer.id, " from clock ", clock, " on"));
  }

  void Pull(Trainer& trainer) {
    // Without keys it would not wait for anything.
    std::vector<int64_t> keys = {0};
    for (int64_t key = 1; key < kKeys; ++key) {
      if (job_.random().Below(3) > 0) keys.push_back(key);
    }
    const int64_t pull = history_.BeginPull(*trainer.id);
    trainer.pull =
        trainer.table
            ->Pull(
                Tensor::FromVector(keys, {static_cast<int64_t>(keys.size())}))
            .Then([this, pull, keys](const absl::StatusOr<Tensor>& rows) {
              if (rows.ok()) history_.EndPull(pull, RowsOf(keys, *rows));
              return rows.status();
            });
  }

  static HistoryChecker::Rows RowsOf(const std::vector<int64_t>& keys,
                                     const Tensor& rows) {
    HistoryChecker::Rows seen;
    const std::vector<float> weights = rows.ToVector<float>();
    for (size_t i = 0; i < keys.size(); ++i) {
      seen[keys[i]] =
          PushesInRow({&weights[i * kWidth], static_cast<size_t>(kWidth)});
    }
    return seen;
  }

  // The end of a step: pushes, and the next clock. A trainer does not wait for
  // its pushes.
  void EndStep(Trainer& trainer) {
    trainer.pull.reset();
    const uint64_t pushes = job_.random().Below(3);
    for (uint64_t i = 0; i < pushes; ++i) Push(trainer);
    ++trainer.steps;
    if (consistency_.clocked()) {
      history_.Advance(*trainer.id);
      const absl::Status status = trainer.clock->Advance();
      if (!status.ok()) {
        job_.Note(absl::StrCat("gives up: ", status.ToString()));
        GiveUp(trainer);
        return;
      }
    }
    if (trainer.steps < kSteps) return;
    if (!consistency_.clocked()) {
      trainer.done = true;
      return;
    }
    history_.Leave(*trainer.id);
    trainer.leaving = trainer.clock->Leave();
  }

  void Push(const Trainer& trainer) {
    std::vector<int64_t> keys;
    std::vector<float> gradients;
    for (int64_t key = 0; key < kKeys; ++key) {
      if (job_.random().Below(2) == 0) keys.push_back(key);
    }
    const int64_t push = history_.BeginPush(*trainer.id, keys);
    if (push >= kWidth * kPushesPerWeight) {
      job_.Fail("the rows have too few digits");
      return;
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::vector<float> row = GradientOfPush(push, kWidth);
      gradients.insert(gradients.end(), row.begin(), row.end());
    }
    const auto count = static_cast<int64_t>(keys.size());
    done_.push_back(trainer.table
                        ->Push(Tensor::FromVector(keys, {count}),
                               Tensor::FromVector(gradients, {count, kWidth}))
                        .Then([this, push](const absl::Status& status) {
                          history_.EndPush(push, status.ok());
                        }));
  }

  void CheckEnd() {
    if (!AllDone()) {
      for (const Trainer& trainer : trainers_) {
        job_.Fail(absl::StrCat("a trainer did not end: worker ", trainer.worker,
                               " after ", trainer.steps, " steps"));
      }
      return;
    }
    std::vector<int64_t> keys(kKeys);
    for (int64_t key = 0; key < kKeys; ++key) keys[key] = key;
    // Without a clock, so that it does not wait.
    Trainer& trainer = trainers_[0];
    trainer.table.reset();
    for (int i = 0; i < 100 && !trainer.table.has_value(); ++i) {
      Create(trainer, *job_.agent(0));
      job_.Advance(absl::Milliseconds(100));
    }
    async::Future<Tensor> rows =
        trainer.table->Pull(Tensor::FromVector(keys, {kKeys}));
    for (int i = 0; i < 100 && !rows.ready(); ++i) {
      job_.Advance(absl::Milliseconds(100));
    }
    if (!rows.ready() || !rows.result().ok()) {
      job_.Fail("the rows cannot be read");
      return;
    }
    history_.CheckEnd(RowsOf(keys, *rows.result()));
  }

  const Faults faults_;
  const TableSpec spec_;
  const Consistency consistency_;
  const std::string directory_ =
      absl::StrCat(testing::TempDir(), "/clock_simulation");
  HistoryChecker history_;
  rpc::ClusterSimulation job_;
  int next_id_ = 0;
  std::vector<Trainer> trainers_;
  std::vector<async::Future<void>> done_;
  std::string last_snapshot_;
};

Consistency ConsistencyOf(uint64_t seed) {
  switch (seed % 4) {
    case 0:
      return Consistency::Asynchronous();
    case 1:
      return Consistency::BoundedStaleness(static_cast<int64_t>(seed / 4 % 3));
    default:
      return Consistency::Synchronous();
  }
}

Faults FaultsOf(uint64_t seed) {
  return {.trainers_end = seed % 3 > 0, .servers_end = seed % 3 > 1};
}

// Some tables remove rows, though none of these rows in this time, and some
// have more rows than memory for them.
TableSpec SpecOf(uint64_t seed) {
  TableSpec spec{.name = "t",
                 .width = kWidth,
                 .rule = {"SGD", {{"lr", 1}}},
                 .consistency = ConsistencyOf(seed)};
  if (seed % 5 == 1 || seed % 25 == 4 || seed % 25 == 9) {
    spec.retention = {.ttl = absl::Hours(24), .max_rows = 1'000'000};
  }
  if (seed % 25 == 4 || seed % 25 == 9 || seed % 25 == 2 || seed % 25 == 7) {
    spec.storage = TableStorage::RocksDb(1);
  }
  return spec;
}

using ClockSeedsTest = rpc::SeedsTest;

TEST_P(ClockSeedsTest, PullsSeeWhatTheConsistencyDemands) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return ClockSimulation(seed, verbose, SpecOf(seed), FaultsOf(seed)).Run();
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClockSeedsTest,
                         testing::ValuesIn(rpc::SeedsOfCases()));

}  // namespace
}  // namespace hawser::ps
