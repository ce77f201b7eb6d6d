#include "ps/storage/row_codec.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ps/storage/key_hash.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/rows/stochastic_rounding.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/half_convert.h"

namespace hawser::ps {

void ReadWeights(const RowLayout& layout, const std::byte* row,
                 float* weights) {
  const auto width = static_cast<int64_t>(layout.width());
  switch (layout.dtype()) {
    case tensor::DType::kF16:
      tensor::HalfToFloat(reinterpret_cast<const tensor::Half*>(row), weights,
                          width);
      break;
    case tensor::DType::kBF16:
      tensor::BFloat16ToFloat(reinterpret_cast<const tensor::BFloat16*>(row),
                              weights, width);
      break;
    default:
      std::memcpy(weights, row, layout.weight_bytes());
  }
}

void WriteWeights(const RowLayout& layout, const float* weights, uint64_t key,
                  std::byte* row) {
  const uint64_t salt = HashKey(key) + HashKey(layout.step(row));
  switch (layout.dtype()) {
    case tensor::DType::kF16:
      RoundStochastically(weights, layout.width(), salt,
                          reinterpret_cast<tensor::Half*>(row));
      break;
    case tensor::DType::kBF16:
      RoundStochastically(weights, layout.width(), salt,
                          reinterpret_cast<tensor::BFloat16*>(row));
      break;
    default:
      std::memcpy(row, weights, layout.weight_bytes());
  }
}

}  // namespace hawser::ps
