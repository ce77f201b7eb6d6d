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
//   memory_per_row_16         bytes of a row of 16 floats with one number of
//                             state, compared with its payload
//
// Turns of both sides alternate. The ratio is computed for each pair of turns.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "benchmarks/measurement.h"
#include "benchmarks/plain_map_table.h"
#include "optim/make_update_rule.h"
#include "optim/row_wise_adagrad.h"
#include "optim/update_rule.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, only, "", "Run only the cases that begin with this.");

namespace hawser::benchmarks {
namespace {

constexpr double kLearningRate = 0.01;
constexpr int kBatches = 32;

bool Wanted(const std::string& name) {
  return name.starts_with(absl::GetFlag(FLAGS_only)) ||
         absl::GetFlag(FLAGS_only).starts_with(name);
}

struct InProcessCase {
  int64_t width;
  size_t rows;
  size_t batch_keys;
};

// Rows a second that `work`, called for each batch, processes.
template <class Work>
double Rate(const std::vector<std::vector<uint64_t>>& batches,
            const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  size_t keys = 0;
  for (const std::vector<uint64_t>& batch : batches) {
    work(batch);
    keys += batch.size();
  }
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  return static_cast<double>(keys) / spent.count();
}

absl::Status RunInProcess(const InProcessCase& what) {
  const std::string suffix = absl::StrCat("_", what.width);
  if (!Wanted("in_process_pull" + suffix) &&
      !Wanted("in_process_push" + suffix)) {
    return absl::OkStatus();
  }
  std::mt19937_64 random(1);
  std::vector<uint64_t> keys(what.rows);
  for (uint64_t& key : keys) key = random();
  const ps::TableSpec spec{.name = "rows",
                           .width = what.width,
                           .rule = optim::RowWiseAdagrad({}),
                           .initializer = ps::Initializer::Constant(0.1)};
  ASSIGN_OR_RETURN(const std::unique_ptr<optim::UpdateRule> rule,
                   optim::MakeUpdateRule(spec.rule));
  PlainMapTable plain(keys, static_cast<size_t>(what.width), 0.1f, *rule);
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> table,
                   ps::SparseTable::Create(spec));
  std::vector<float> rows(what.batch_keys * what.width, 1e-6f);
  for (size_t begin = 0; begin < keys.size(); begin += what.batch_keys) {
    const size_t count = std::min(what.batch_keys, keys.size() - begin);
    RETURN_IF_ERROR(
        table->Pull({&keys[begin], count}, {rows.data(), count * what.width}));
  }
  std::vector<std::vector<uint64_t>> batches(kBatches);
  for (std::vector<uint64_t>& batch : batches) {
    for (size_t i = 0; i < what.batch_keys; ++i) {
      batch.push_back(keys[random() % keys.size()]);
    }
  }

  Measurement pull{.bench = "ps",
                   .case_name = "in_process_pull" + suffix,
                   .unit = "rows/s",
                   .peer = "plain_map"};
  Measurement push = pull;
  push.case_name = "in_process_push" + suffix;
  const std::vector<float> gradients(rows.size(), 1e-6f);
  absl::Status status;
  const int turns = absl::GetFlag(FLAGS_quick) ? 9 : 31;
  for (int turn = 0; turn < turns; ++turn) {
    pull.values.push_back(Rate(batches, [&](const auto& batch) {
      status.Update(table->Pull(batch, rows));
    }));
    pull.peer_values.push_back(
        Rate(batches, [&](const auto& batch) { plain.Pull(batch, rows); }));
    push.values.push_back(Rate(batches, [&](const auto& batch) {
      status.Update(table->Push(batch, gradients, kLearningRate));
    }));
    push.peer_values.push_back(Rate(batches, [&](const auto& batch) {
      plain.Push(batch, gradients, kLearningRate);
    }));
    RETURN_IF_ERROR(status);
  }
  Report(pull);
  Report(push);
  const double payload = static_cast<double>(what.width) * sizeof(float);
  Report({.bench = "ps",
          .case_name = "memory_per_row" + suffix,
          .unit = "bytes",
          .better = Better::kLower,
          .peer = "payload",
          .values = {static_cast<double>(table->bytes()) /
                     static_cast<double>(table->num_rows())},
          .peer_values = {payload}});
  return absl::OkStatus();
}

absl::Status Run() {
  RETURN_IF_ERROR(RunInProcess({16, 10'000'000, 16'384}));
  return RunInProcess({64, 1'000'000, 13'312});
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Benchmark of the parameter server.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "ps: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
