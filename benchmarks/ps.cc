// Benchmark of the parameter server, compared with its peers in the same run.
//
//   ./bazelw run -c opt //benchmarks:ps -- --quick
//
// In one process and one thread, random keys of a full table, compared with a
// loop over an absl::flat_hash_map (plain_map):
//   in_process_pull_16, _64   rows of 16 floats of 10 million, batches of
//   16,384
//                             keys; and of 64 floats of 1 million, 13,312 keys
//   in_process_push_16, _64   the same rows updated by row-wise Adagrad
//   push_key_ranges_64        the same rows, in a table with 256 key ranges
//   that
//                             have learning rates of their own, compared with
//                             a table without ranges (no_ranges)
//   memory_per_row_16         bytes of a row of 16 floats with one number of
//                             state, compared with its payload
//
//   snapshot_training         rows a second that one thread updates, as in
//                             in_process_push_64, while another writes
//                             snapshots to --directory, compared with the same
//                             without a snapshot (no_snapshot)
//   snapshot_write            bytes a second of these snapshots, synced,
//                             compared with a file of as many zeros (write)
//
// Client and server in two processes, which share the machine's cores: rows of
// 64 floats of 1 million, requests of 13,312 random keys, two in flight:
//   pull_64_tcp, push_64_tcp              over a socket
//   pull_64_same_host, push_64_same_host  over shared memory, the default
// compared with the loop in one process (plain_map), with ps::SparseTable in
// one process (in_process), and with Redis (redis: pipelined MGET or MSET).
//   click_steps               samples a second of two trainers, which sum 26
//                             rows of 64 floats a sample on the server, with
//                             SGD, compared with a parameter server in PyTorch
//                             (pytorch) and with PyTorch in one process
//                             (pytorch_one_process)
//   pull_1k_tcp_p50, pull_1k_same_host_p50  median time of a pull of 1,000 rows
//                             of 16 floats, compared with a call that returns
//                             its 64 bytes (small_call), and with that call
//                             and a pull of the same rows in one process
//                             (in_process_and_call)
//
// Turns of both sides alternate. The ratio is computed for each pair of turns.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "benchmarks/click_trainer.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/plain_map_table.h"
#include "benchmarks/redis_rows.h"
#include "benchmarks/store_process.h"
#include "benchmarks/table_pair.h"
#include "fs/atomic_file.h"
#include "optim/make_update_rule.h"
#include "optim/row_wise_adagrad.h"
#include "optim/update_rule.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "tensor/tensor.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, only, "", "Run only the cases that begin with this.");
ABSL_FLAG(std::string, directory, "/var/tmp", "Directory of snapshots.");
ABSL_FLAG(std::string, serve, "",
          "Internal: the server that this process runs.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(int, index, 0, "Internal: number of the trainer.");
ABSL_FLAG(std::string, store, "", "Internal: address of the store.");
ABSL_FLAG(bool, same_host, true, "Internal: whether shared memory is used.");

namespace hawser::benchmarks {
namespace {

constexpr double kLearningRate = 0.01;
constexpr int kBatches = 32;

bool Wanted(const std::string& name) {
  return name.starts_with(absl::GetFlag(FLAGS_only)) ||
         absl::GetFlag(FLAGS_only).starts_with(name);
}

struct RowsCase {
  int64_t width;
  size_t rows;
  size_t batch_keys;
};

constexpr RowsCase kNarrow = {16, 10'000'000, 16'384};
constexpr RowsCase kWide = {64, 1'000'000, 13'312};

ps::TableSpec SpecOf(const RowsCase& what) {
  return {.name = "rows",
          .width = what.width,
          .rule = optim::RowWiseAdagrad({}),
          .initializer = ps::Initializer::Constant(0.1)};
}

using Batches = std::vector<std::vector<uint64_t>>;

// The keys of the rows of a case, and requests of random ones.
struct Workload {
  explicit Workload(const RowsCase& what) : keys(what.rows), batches(kBatches) {
    std::mt19937_64 random(1);
    for (uint64_t& key : keys) key = random();
    for (std::vector<uint64_t>& batch : batches) {
      for (size_t i = 0; i < what.batch_keys; ++i) {
        batch.push_back(keys[random() % keys.size()]);
      }
    }
  }

  std::vector<uint64_t> keys;
  Batches batches;
};

// Rows a second that `work`, called for each batch, processes; `finish` waits
// for the rest.
template <class Work, class Finish>
double Rate(const Batches& batches, const Work& work, const Finish& finish) {
  const auto begin = std::chrono::steady_clock::now();
  size_t keys = 0;
  for (const std::vector<uint64_t>& batch : batches) {
    work(batch);
    keys += batch.size();
  }
  finish();
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  return static_cast<double>(keys) / spent.count();
}

template <class Work>
double Rate(const Batches& batches, const Work& work) {
  return Rate(batches, work, [] {});
}

int Turns() { return absl::GetFlag(FLAGS_quick) ? 7 : 31; }

absl::Status Fill(ps::SparseTable& table, const Workload& load) {
  constexpr size_t kChunk = 4096;
  std::vector<float> rows(kChunk * table.spec().width);
  for (size_t begin = 0; begin < load.keys.size(); begin += kChunk) {
    const size_t count = std::min(kChunk, load.keys.size() - begin);
    RETURN_IF_ERROR(table.Pull({&load.keys[begin], count},
                               {rows.data(), count * table.spec().width}));
  }
  return absl::OkStatus();
}

absl::Status RunInProcess(const RowsCase& what) {
  const std::string suffix = absl::StrCat("_", what.width);
  if (!Wanted("in_process_pull" + suffix) &&
      !Wanted("in_process_push" + suffix)) {
    return absl::OkStatus();
  }
  const Workload load(what);
  const ps::TableSpec spec = SpecOf(what);
  ASSIGN_OR_RETURN(const std::unique_ptr<optim::UpdateRule> rule,
                   optim::MakeUpdateRule(spec.rule));
  PlainMapTable plain(load.keys, static_cast<size_t>(what.width), 0.1f, *rule);
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> table,
                   ps::SparseTable::Create(spec));
  RETURN_IF_ERROR(Fill(*table, load));
  std::vector<float> rows(what.batch_keys * what.width);
  const std::vector<float> gradients(rows.size(), 1e-6f);

  Measurement pull{.bench = "ps",
                   .case_name = "in_process_pull" + suffix,
                   .unit = "rows/s",
                   .peer = "plain_map"};
  Measurement push = pull;
  push.case_name = "in_process_push" + suffix;
  absl::Status status;
  for (int turn = 0; turn < Turns(); ++turn) {
    pull.values.push_back(Rate(load.batches, [&](const auto& batch) {
      status.Update(table->Pull(batch, rows));
    }));
    pull.peer_values.push_back(Rate(
        load.batches, [&](const auto& batch) { plain.Pull(batch, rows); }));
    push.values.push_back(Rate(load.batches, [&](const auto& batch) {
      status.Update(table->Push(batch, gradients, {kLearningRate}));
    }));
    push.peer_values.push_back(Rate(load.batches, [&](const auto& batch) {
      plain.Push(batch, gradients, kLearningRate);
    }));
    RETURN_IF_ERROR(status);
  }
  Report(pull);
  Report(push);
  Report({.bench = "ps",
          .case_name = "memory_per_row" + suffix,
          .unit = "bytes",
          .better = Better::kLower,
          .peer = "payload",
          .values = {static_cast<double>(table->bytes()) /
                     static_cast<double>(table->num_rows())},
          .peer_values = {static_cast<double>(what.width) * sizeof(float)}});
  return absl::OkStatus();
}

absl::Status RunKeyRanges() {
  if (!Wanted("push_key_ranges_64")) return absl::OkStatus();
  const Workload load(kWide);
  ps::TableSpec spec = SpecOf(kWide);
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> plain,
                   ps::SparseTable::Create(spec));
  for (uint64_t i = 0; i < 256; ++i) {
    spec.key_ranges.push_back(
        {.first = i << 56,
         .last = i << 56 | (UINT64_MAX >> 8),
         .rule = optim::RowWiseAdagrad({.lr = 1e-4 * static_cast<double>(i)})});
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> ranged,
                   ps::SparseTable::Create(spec));
  RETURN_IF_ERROR(Fill(*plain, load));
  RETURN_IF_ERROR(Fill(*ranged, load));
  const std::vector<float> gradients(kWide.batch_keys * kWide.width, 1e-6f);
  Measurement push{.bench = "ps",
                   .case_name = "push_key_ranges_64",
                   .unit = "rows/s",
                   .peer = "no_ranges"};
  absl::Status status;
  for (int turn = 0; turn < Turns(); ++turn) {
    push.values.push_back(Rate(load.batches, [&](const auto& batch) {
      status.Update(ranged->Push(batch, gradients, {}));
    }));
    push.peer_values.push_back(Rate(load.batches, [&](const auto& batch) {
      status.Update(plain->Push(batch, gradients, {}));
    }));
    RETURN_IF_ERROR(status);
  }
  Report(push);
  return absl::OkStatus();
}

// Bytes a second at which a file of `bytes` zeros is written and synced.
absl::StatusOr<double> WriteRate(const std::string& path, int64_t bytes) {
  const std::vector<std::byte> block(size_t{4} << 20);
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(fs::AtomicFile file, fs::AtomicFile::Create(path));
  for (int64_t left = bytes; left > 0;
       left -= static_cast<int64_t>(block.size())) {
    RETURN_IF_ERROR(file.Append(block));
  }
  RETURN_IF_ERROR(file.Commit());
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  return static_cast<double>(bytes) / spent.count();
}

absl::Status RunSnapshot() {
  if (!Wanted("snapshot_training") && !Wanted("snapshot_write")) {
    return absl::OkStatus();
  }
  const Workload load(kWide);
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> table,
                   ps::SparseTable::Create(SpecOf(kWide)));
  RETURN_IF_ERROR(Fill(*table, load));
  const std::vector<float> gradients(kWide.batch_keys * kWide.width, 1e-6f);
  const std::string path =
      absl::StrCat(absl::GetFlag(FLAGS_directory), "/hawser_benchmark.rows");
  Measurement training{.bench = "ps",
                       .case_name = "snapshot_training",
                       .unit = "rows/s",
                       .peer = "no_snapshot"};
  Measurement writing{.bench = "ps",
                      .case_name = "snapshot_write",
                      .unit = "bytes/s",
                      .peer = "write"};
  absl::Status status;
  const auto push_until = [&](const std::atomic<bool>& done) {
    const auto begin = std::chrono::steady_clock::now();
    double rows = 0;
    for (size_t i = 0; !done; ++i) {
      status.Update(
          table->Push(load.batches[i % kBatches], gradients, {kLearningRate}));
      rows += static_cast<double>(kWide.batch_keys);
    }
    const std::chrono::duration<double> spent =
        std::chrono::steady_clock::now() - begin;
    return rows / spent.count();
  };
  for (int turn = 0; turn < (absl::GetFlag(FLAGS_quick) ? 3 : 15); ++turn) {
    std::atomic<bool> done{false};
    absl::StatusOr<ps::TableFileSize> size;
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> spent{};
    std::thread writer([&] {
      size = ps::WriteTableFile(*table, {}, path);
      spent = std::chrono::steady_clock::now() - begin;
      done = true;
    });
    training.values.push_back(push_until(done));
    writer.join();
    RETURN_IF_ERROR(size);
    std::atomic<bool> slept{false};
    std::thread sleeper([&] {
      std::this_thread::sleep_for(spent);
      slept = true;
    });
    training.peer_values.push_back(push_until(slept));
    sleeper.join();
    writing.values.push_back(static_cast<double>(size->bytes) / spent.count());
    ASSIGN_OR_RETURN(const double rate, WriteRate(path, size->bytes));
    writing.peer_values.push_back(rate);
    RETURN_IF_ERROR(status);
  }
  std::remove(path.c_str());
  Report(training);
  Report(writing);
  return absl::OkStatus();
}

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

absl::Status RunServer(bool same_host) {
  const std::string suffix = same_host ? "_same_host" : "_tcp";
  if (!Wanted("pull_64" + suffix) && !Wanted("push_64" + suffix)) {
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
  for (int turn = 0; turn < Turns(); ++turn) {
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

absl::Status RunLatency(bool same_host) {
  const std::string name =
      same_host ? "pull_1k_same_host_p50" : "pull_1k_tcp_p50";
  if (!Wanted(name)) return absl::OkStatus();
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
  for (int turn = 0; turn < Turns(); ++turn) {
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

absl::Status RunClicks() {
  if (!Wanted("click_steps")) return absl::OkStatus();
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
    ASSIGN_OR_RETURN(
        peers[name],
        PeerProcess::Start({absl::GetFlag(FLAGS_python),
                            "benchmarks/peers/ps_torch.py", argument},
                           "install the peer with: apt-get install "
                           "python3-torch libopenblas0-pthread",
                           PeerProcess::WhenIdle::kStopped));
    measurements[name] = {.bench = "ps",
                          .case_name = "click_steps",
                          .unit = "samples/s",
                          .peer = name};
  }
  for (int turn = 0; turn < (absl::GetFlag(FLAGS_quick) ? 5 : 15); ++turn) {
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

absl::Status Run() {
  RETURN_IF_ERROR(RunInProcess(kNarrow));
  RETURN_IF_ERROR(RunInProcess(kWide));
  RETURN_IF_ERROR(RunKeyRanges());
  RETURN_IF_ERROR(RunSnapshot());
  for (bool same_host : {false, true}) RETURN_IF_ERROR(RunServer(same_host));
  for (bool same_host : {false, true}) RETURN_IF_ERROR(RunLatency(same_host));
  RETURN_IF_ERROR(RunClicks());
  return absl::OkStatus();
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Benchmark of the parameter server.");
  absl::ParseCommandLine(argc, argv);
  const std::string serve = absl::GetFlag(FLAGS_serve);
  if (serve == "store") return hawser::benchmarks::ServeStore();
  if (serve == "trainer") {
    return hawser::benchmarks::TrainClicks(absl::GetFlag(FLAGS_store),
                                           absl::GetFlag(FLAGS_index));
  }
  if (serve == "tables") {
    return hawser::benchmarks::ServeTables(absl::GetFlag(FLAGS_store),
                                           absl::GetFlag(FLAGS_same_host));
  }
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "ps: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
