#ifndef HAWSER_BENCHMARKS_PLAIN_MAP_TABLE_H_
#define HAWSER_BENCHMARKS_PLAIN_MAP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "optim/update_rule.h"

namespace hawser::benchmarks {

// The parameter table that one would write by hand: a hash map from keys to row
// numbers, rows side by side, and a loop over the keys of a request. The peer
// of ps::SparseTable.
class PlainMapTable {
 public:
  // A table of the rows `keys`, filled with `weight`, with one number of state
  // per row. `rule` must outlive the table.
  PlainMapTable(std::span<const uint64_t> keys, size_t width, float weight,
                const optim::UpdateRule& rule);

  // As ps::SparseTable; all keys must exist.
  void Pull(std::span<const uint64_t> keys, std::span<float> rows) const;
  void Push(std::span<const uint64_t> keys, std::span<const float> gradients,
            double learning_rate);

 private:
  const size_t width_;
  const optim::UpdateRule& rule_;
  absl::flat_hash_map<uint64_t, uint32_t> numbers_;
  std::vector<float> rows_;
  std::vector<float> state_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_PLAIN_MAP_TABLE_H_
