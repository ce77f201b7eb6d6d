#include "benchmarks/plain_map_table.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "optim/update_rule.h"
#include "tensor/dtype.h"

namespace hawser::benchmarks {

PlainMapTable::PlainMapTable(std::span<const uint64_t> keys, size_t width,
                             float weight, const optim::UpdateRule& rule)
    : width_(width),
      rule_(rule),
      rows_(keys.size() * width, weight),
      state_(keys.size()) {
  numbers_.reserve(keys.size());
  for (uint64_t key : keys) {
    numbers_.emplace(key, static_cast<uint32_t>(numbers_.size()));
  }
}

void PlainMapTable::Pull(std::span<const uint64_t> keys,
                         std::span<float> rows) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t number = numbers_.find(keys[i])->second;
    std::memcpy(&rows[i * width_], &rows_[number * width_],
                width_ * sizeof(float));
  }
}

void PlainMapTable::Push(std::span<const uint64_t> keys,
                         std::span<const float> gradients,
                         double learning_rate) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t number = numbers_.find(keys[i])->second;
    optim::UpdateSpan span;
    span.dtype = tensor::DType::kF32;
    span.count = width_;
    span.parameter = &rows_[number * width_];
    span.gradient = &gradients[i * width_];
    span.slots[0] = &state_[number];
    span.learning_rate = learning_rate;
    rule_.Update({&span, 1});
  }
}

}  // namespace hawser::benchmarks
