#include "benchmarks/ps_server_cases.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "benchmarks/click_trainer.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/plain_map_table.h"
#include "benchmarks/ps_workload.h"
#include "benchmarks/redis_rows.h"
#include "benchmarks/table_pair.h"
#include "optim/make_update_rule.h"
#include "optim/update_rule.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

// Calls, of which at most two are in flight.
template <class T>
class TwoInFlight {
 public:
  explicit TwoInFlight(absl::Status& status) : status_(status) {}

  void Add(async::Future<T> call) {
    if (calls_.size() == 2) WaitForOne();
    calls_.push_back(std::move(call));
  }
  void Finish() {
    while (!calls_.empty()) WaitForOne();
  }

 private:
  void WaitForOne() {
    if constexpr (std::is_void_v<T>) {
      status_.Update(calls_.front().Wait());
    } else {
      status_.Update(calls_.front().Wait().status());
    }
    calls_.pop_front();
  }

  absl::Status& status_;
  std::deque<async::Future<T>> calls_;
};

Tensor KeysTensor(const std::vector<uint64_t>& keys) {
  return Tensor::FromVector(std::vector<int64_t>(keys.begin(), keys.end()),
                            {static_cast<int64_t>(keys.size())});
}

absl::Status RunServer(const PsRun& run, bool same_host) {
  const std::string suffix = same_host ? "_same_host" : "_tcp";
  if (!run.Wanted("pull_64" + suffix) && !run.Wanted("push_64" + suffix)) {
    return absl::OkStatus();
  }
  const Workload load(kWide);
  const ps::TableSpec spec = SpecOf(kWide);
  ASSIGN_OR_RETURN(const std::unique_ptr<optim::UpdateRule> rule,
                   optim::MakeUpdateRule(spec.rule));
  PlainMapTable plain(load.keys, 64, 0.1f, *rule);
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> local,
                   ps::SparseTable::Create(spec));
  RETURN_IF_ERROR(Fill(*local, load));
  ASSIGN_OR_RETURN(const std::unique_ptr<TablePair> pair,
                   TablePair::Start(spec, same_host));
  const ps::Table& table = pair->table();
  ASSIGN_OR_RETURN(const std::unique_ptr<RedisRows> redis,
                   RedisRows::Start(64));
  std::vector<float> rows(kWide.batch_keys * 64, 1e-6f);
  for (size_t begin = 0; begin < load.keys.size(); begin += kWide.batch_keys) {
    const size_t count = std::min(kWide.batch_keys, load.keys.size() - begin);
    const std::vector<uint64_t> keys(&load.keys[begin],
                                     &load.keys[begin] + count);
    RETURN_IF_ERROR(table.Pull(KeysTensor(keys)).Wait().status());
    RETURN_IF_ERROR(redis->Set(keys, rows));
  }
  std::map<const std::vector<uint64_t>*, Tensor> tensors;
  for (const auto& batch : load.batches) tensors[&batch] = KeysTensor(batch);
  const Tensor gradients =
      Tensor::Full({static_cast<int64_t>(kWide.batch_keys), 64}, 1e-6);
  const Batches few(load.batches.begin(), load.batches.begin() + 4);

  std::map<std::string, Measurement> pulls;
  std::map<std::string, Measurement> pushes;
  for (const char* peer : {"plain_map", "in_process", "redis"}) {
    pulls[peer] = {.bench = "ps",
                   .case_name = "pull_64" + suffix,
                   .unit = "rows/s",
                   .peer = peer};
    pushes[peer] = pulls[peer];
    pushes[peer].case_name = "push_64" + suffix;
  }
  absl::Status status;
  for (int turn = 0; turn < run.turns(); ++turn) {
    TwoInFlight<Tensor> pulling(status);
    const double pull = Rate(
        load.batches,
        [&](const auto& batch) { pulling.Add(table.Pull(tensors[&batch])); },
        [&] { pulling.Finish(); });
    TwoInFlight<void> pushing(status);
    const double push = Rate(
        load.batches,
        [&](const auto& batch) {
          pushing.Add(table.Push(tensors[&batch], gradients));
        },
        [&] { pushing.Finish(); });
    const auto add = [&](const char* peer, double peer_pull, double peer_push) {
      pulls[peer].values.push_back(pull);
      pulls[peer].peer_values.push_back(peer_pull);
      pushes[peer].values.push_back(push);
      pushes[peer].peer_values.push_back(peer_push);
    };
    add("plain_map",
        Rate(load.batches, [&](const auto& batch) { plain.Pull(batch, rows); }),
        Rate(load.batches, [&](const auto& batch) {
          plain.Push(batch, rows, kLearningRate);
        }));
    add("in_process",
        Rate(load.batches,
             [&](const auto& batch) {
               status.Update(local->Pull(batch, rows));
             }),
        Rate(load.batches, [&](const auto& batch) {
          status.Update(local->Push(batch, rows, {kLearningRate}));
        }));
    add("redis",
        Rate(
            few,
            [&](const auto& batch) { status.Update(redis->Get(batch, rows)); }),
        Rate(few, [&](const auto& batch) {
          status.Update(redis->Set(batch, rows));
        }));
    RETURN_IF_ERROR(status);
  }
  for (const auto& [peer, measurement] : pulls) Report(measurement);
  for (const auto& [peer, measurement] : pushes) Report(measurement);
  return absl::OkStatus();
}

double Median(int64_t count, const std::function<void()>& call) {
  std::vector<double> micros;
  for (int64_t i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    micros.push_back(std::chrono::duration<double, std::micro>(
                         std::chrono::steady_clock::now() - begin)
                         .count());
  }
  return benchmarks::Median(std::move(micros));
}

absl::Status RunLatency(const PsRun& run, bool same_host) {
  const std::string name =
      same_host ? "pull_1k_same_host_p50" : "pull_1k_tcp_p50";
  if (!run.Wanted(name)) return absl::OkStatus();
  const RowsCase what = {16, 100'000, 1000};
  const Workload load(what);
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> local,
                   ps::SparseTable::Create(SpecOf(what)));
  RETURN_IF_ERROR(Fill(*local, load));
  std::vector<float> rows(what.batch_keys * what.width);
  ASSIGN_OR_RETURN(const std::unique_ptr<TablePair> pair,
                   TablePair::Start(SpecOf(what), same_host));
  std::vector<Tensor> requests;
  for (const auto& batch : load.batches) requests.push_back(KeysTensor(batch));
  RETURN_IF_ERROR(pair->table().Pull(KeysTensor(load.keys)).Wait().status());
  Measurement measurement{.bench = "ps",
                          .case_name = name,
                          .unit = "us",
                          .better = Better::kLower,
                          .peer = "small_call"};
  Measurement both = measurement;
  both.peer = "in_process_and_call";
  absl::Status status;
  size_t next = 0;
  size_t next_local = 0;
  for (int turn = 0; turn < run.turns(); ++turn) {
    measurement.values.push_back(Median(500, [&] {
      status.Update(
          pair->table().Pull(requests[next++ % kBatches]).Wait().status());
    }));
    measurement.peer_values.push_back(
        Median(500, [&] { status.Update(pair->SmallCall()); }));
    const double pull = Median(500, [&] {
      status.Update(local->Pull(load.batches[next_local++ % kBatches], rows));
    });
    both.values.push_back(measurement.values.back());
    both.peer_values.push_back(measurement.peer_values.back() + pull);
    RETURN_IF_ERROR(status);
  }
  Report(measurement);
  Report(both);
  return absl::OkStatus();
}

// Runs `steps` steps in each trainer, concurrently; samples a second.
absl::StatusOr<double> ClickRate(
    const std::vector<std::unique_ptr<PeerProcess>>& trainers, int64_t steps) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<absl::Status> results(trainers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < trainers.size(); ++i) {
    threads.emplace_back([&, i] {
      results[i] = trainers[i]->Ask(absl::StrCat(steps)).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) RETURN_IF_ERROR(result);
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  return static_cast<double>(steps * kClickBatch) *
         static_cast<double>(trainers.size()) / spent.count();
}

absl::Status RunClicks(const PsRun& run) {
  if (!run.Wanted("click_steps")) return absl::OkStatus();
  constexpr int kTrainers = 2;
  ASSIGN_OR_RETURN(const std::unique_ptr<TablePair> pair,
                   TablePair::Start(ClickTable(), /*same_host=*/true));
  std::vector<std::unique_ptr<PeerProcess>> trainers;
  for (int i = 0; i < kTrainers; ++i) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<PeerProcess> trainer,
        PeerProcess::Start({"/proc/self/exe", "--serve=trainer",
                            absl::StrCat("--store=", pair->store_address()),
                            absl::StrCat("--index=", i)},
                           "a trainer", PeerProcess::WhenIdle::kRuns));
    trainers.push_back(std::move(trainer));
  }
  const std::map<std::string, std::string> commands = {
      {"pytorch", absl::StrCat(kTrainers)}, {"pytorch_one_process", "0"}};
  std::map<std::string, std::unique_ptr<PeerProcess>> peers;
  std::map<std::string, Measurement> measurements;
  for (const auto& [name, argument] : commands) {
    ASSIGN_OR_RETURN(peers[name],
                     PeerProcess::Start(
                         {run.python, "benchmarks/peers/ps_torch.py", argument},
                         "install the peer with: apt-get install "
                         "python3-torch libopenblas0-pthread",
                         PeerProcess::WhenIdle::kStopped));
    measurements[name] = {.bench = "ps",
                          .case_name = "click_steps",
                          .unit = "samples/s",
                          .peer = name};
  }
  for (int turn = 0; turn < (run.quick ? 5 : 15); ++turn) {
    for (const auto& [name, peer] : peers) {
      ASSIGN_OR_RETURN(const double ours, ClickRate(trainers, 100));
      ASSIGN_OR_RETURN(const double theirs, peer->AskNumber("50"));
      measurements[name].values.push_back(ours);
      measurements[name].peer_values.push_back(theirs);
    }
  }
  for (const auto& [name, measurement] : measurements) Report(measurement);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunServerCases(const PsRun& run) {
  for (bool same_host : {false, true}) {
    RETURN_IF_ERROR(RunServer(run, same_host));
  }
  for (bool same_host : {false, true}) {
    RETURN_IF_ERROR(RunLatency(run, same_host));
  }
  RETURN_IF_ERROR(RunClicks(run));
  return absl::OkStatus();
}

}  // namespace hawser::benchmarks
