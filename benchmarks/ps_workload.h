// Options, tables and requests that the cases of //benchmarks:ps share.

#ifndef HAWSER_BENCHMARKS_PS_WORKLOAD_H_
#define HAWSER_BENCHMARKS_PS_WORKLOAD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"

namespace hawser::benchmarks {

// What the user asks for.
struct PsRun {
  bool quick = false;
  // What the names of the cases begin with.
  std::string only = {};
  // Of snapshots.
  std::string directory = {};
  // Interpreter with PyTorch.
  std::string python = {};

  // Whether a case of this name runs, or one that begins with it.
  bool Wanted(const std::string& name) const {
    return name.starts_with(only) || only.starts_with(name);
  }
  int turns() const { return quick ? 7 : 31; }
};

inline constexpr double kLearningRate = 0.01;
inline constexpr int kBatches = 32;

struct RowsCase {
  int64_t width;
  size_t rows;
  size_t batch_keys;
};

inline constexpr RowsCase kNarrow = {16, 10'000'000, 16'384};
inline constexpr RowsCase kWide = {64, 1'000'000, 13'312};

ps::TableSpec SpecOf(const RowsCase& what);

using Batches = std::vector<std::vector<uint64_t>>;

// The keys of the rows of a case, and requests of random ones.
struct Workload {
  explicit Workload(const RowsCase& what);

  std::vector<uint64_t> keys;
  Batches batches;
};

// Creates the rows of all keys.
absl::Status Fill(ps::SparseTable& table, const Workload& load);

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

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_PS_WORKLOAD_H_
