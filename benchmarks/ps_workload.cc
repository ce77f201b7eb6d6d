#include "benchmarks/ps_workload.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "optim/row_wise_adagrad.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"

namespace hawser::benchmarks {

ps::TableSpec SpecOf(const RowsCase& what) {
  return {.name = "rows",
          .width = what.width,
          .rule = optim::RowWiseAdagrad({}),
          .initializer = ps::Initializer::Constant(0.1)};
}

Workload::Workload(const RowsCase& what) : keys(what.rows), batches(kBatches) {
  std::mt19937_64 random(1);
  for (uint64_t& key : keys) key = random();
  for (std::vector<uint64_t>& batch : batches) {
    for (size_t i = 0; i < what.batch_keys; ++i) {
      batch.push_back(keys[random() % keys.size()]);
    }
  }
}

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

}  // namespace hawser::benchmarks
