#include "benchmarks/ps_table_cases.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "benchmarks/measurement.h"
#include "benchmarks/plain_map_table.h"
#include "benchmarks/ps_workload.h"
#include "fs/atomic_file.h"
#include "optim/make_update_rule.h"
#include "optim/row_wise_adagrad.h"
#include "optim/update_rule.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"

namespace hawser::benchmarks {
namespace {

absl::Status RunInProcess(const PsRun& run, const RowsCase& what) {
  const std::string suffix = absl::StrCat("_", what.width);
  if (!run.Wanted("in_process_pull" + suffix) &&
      !run.Wanted("in_process_push" + suffix)) {
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
  for (int turn = 0; turn < run.turns(); ++turn) {
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

absl::Status RunKeyRanges(const PsRun& run) {
  if (!run.Wanted("push_key_ranges_64")) return absl::OkStatus();
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
  for (int turn = 0; turn < run.turns(); ++turn) {
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

absl::Status RunSnapshot(const PsRun& run) {
  if (!run.Wanted("snapshot_training") && !run.Wanted("snapshot_write")) {
    return absl::OkStatus();
  }
  const Workload load(kWide);
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> table,
                   ps::SparseTable::Create(SpecOf(kWide)));
  RETURN_IF_ERROR(Fill(*table, load));
  const std::vector<float> gradients(kWide.batch_keys * kWide.width, 1e-6f);
  const std::string path =
      absl::StrCat(run.directory, "/hawser_benchmark.rows");
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
  for (int turn = 0; turn < (run.quick ? 3 : 15); ++turn) {
    std::atomic<bool> done{false};
    absl::StatusOr<ps::TableFileSize> size;
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> spent{};
    std::thread writer([&] {
      size = ps::WriteTableFile(
          *table, {.snapshot = static_cast<uint64_t>(turn) + 1}, path);
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

}  // namespace

absl::Status RunTableCases(const PsRun& run) {
  RETURN_IF_ERROR(RunInProcess(run, kNarrow));
  RETURN_IF_ERROR(RunInProcess(run, kWide));
  RETURN_IF_ERROR(RunKeyRanges(run));
  RETURN_IF_ERROR(RunSnapshot(run));
  return absl::OkStatus();
}

}  // namespace hawser::benchmarks
