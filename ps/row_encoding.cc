#include "ps/row_encoding.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/half_convert.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::tensor::DType;

constexpr float kZeroCode = 128;
constexpr float kMaxCode = 127;

// The scale of a row: NaN if a number is not finite.
float ScaleOf(const float* row, size_t width) {
  float largest = 0;
  float sum = 0;
  for (size_t i = 0; i < width; ++i) {
    largest = std::max(largest, std::abs(row[i]));
    // 0 * x is NaN if x is not finite.
    sum += 0 * row[i];
  }
  const float scale = largest / kMaxCode + sum;
  // The largest numbers must not become infinite again.
  return std::isinf(scale * kMaxCode) ? std::nextafter(scale, 0.0f) : scale;
}

std::vector<Tensor> EncodeI8(const Tensor& rows) {
  const int64_t count = rows.dim(0);
  const auto width = static_cast<size_t>(rows.dim(1));
  Tensor codes = Tensor::Empty(rows.shape(), {.dtype = DType::kU8});
  Tensor scales = Tensor::Empty({count});
  const float* row = rows.data<float>();
  uint8_t* code = codes.data<uint8_t>();
  for (int64_t r = 0; r < count; ++r) {
    const float scale = ScaleOf(row, width);
    scales.data<float>()[r] = scale;
    if (!std::isfinite(scale)) {
      code = std::fill_n(code, width, static_cast<uint8_t>(kZeroCode));
      row += width;
      continue;
    }
    // The reciprocal of a denormal number may be infinite.
    const float inverse =
        scale >= std::numeric_limits<float>::min() ? 1 / scale : 0;
    for (size_t i = 0; i < width; ++i) {
      // Positive, so that truncation rounds to nearest.
      code[i] = static_cast<uint8_t>(
          static_cast<int32_t>(row[i] * inverse + (kZeroCode + 0.5f)));
    }
    row += width;
    code += width;
  }
  return {std::move(codes), std::move(scales)};
}

std::vector<Tensor> EncodeNonZero(const Tensor& rows) {
  const float* const numbers = rows.data<float>();
  const int64_t count = rows.num_elements();
  std::vector<float> values;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    if (numbers[i] == 0) continue;
    values.push_back(numbers[i]);
    positions.push_back(i);
  }
  const tensor::Shape shape({static_cast<int64_t>(values.size())});
  return {Tensor::FromVector(values, shape),
          Tensor::FromVector(positions, shape)};
}

}  // namespace

std::vector<Tensor> EncodeRows(const Tensor& rows, RowEncoding encoding) {
  if (encoding == RowEncoding::kF32) return {rows};
  if (encoding == RowEncoding::kNonZero) return EncodeNonZero(rows);
  if (encoding == RowEncoding::kI8) return EncodeI8(rows);
  if (encoding == RowEncoding::kF16) {
    Tensor narrow = Tensor::Empty(rows.shape(), {.dtype = DType::kF16});
    tensor::FloatToHalf(rows.data<float>(), narrow.data<tensor::Half>(),
                        rows.num_elements());
    return {std::move(narrow)};
  }
  Tensor narrow = Tensor::Empty(rows.shape(), {.dtype = DType::kBF16});
  tensor::FloatToBFloat16(rows.data<float>(), narrow.data<tensor::BFloat16>(),
                          rows.num_elements());
  return {std::move(narrow)};
}

absl::StatusOr<Tensor> DecodeRows(std::vector<Tensor> tensors,
                                  const tensor::Shape& shape) {
  const bool has_scales = !tensors.empty() && tensors[0].dtype() == DType::kU8;
  const bool complete =
      tensors.size() == (has_scales ? 2 : 1) && tensors[0].shape() == shape &&
      (!has_scales || (tensors[1].dtype() == DType::kF32 &&
                       tensors[1].shape() == tensor::Shape({shape[0]})));
  if (complete && tensors[0].dtype() == DType::kF32) {
    return std::move(tensors[0]);
  }
  if (!complete || (!has_scales && tensors[0].dtype() != DType::kF16 &&
                    tensors[0].dtype() != DType::kBF16)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows must be f32, f16 or bf16", shape.ToString(),
        ", or u8 with scales, not ", tensors.size(), " tensors",
        tensors.empty() ? "" : ", the first " + tensors[0].ToString()));
  }
  const std::vector<Tensor>& encoded = tensors;
  Tensor rows = Tensor::Empty(shape);
  float* const out = rows.data<float>();
  if (has_scales) {
    DecodeI8(encoded[0].data<uint8_t>(), encoded[1].data<float>(),
             static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]), out);
  } else if (encoded[0].dtype() == DType::kF16) {
    tensor::HalfToFloat(encoded[0].data<tensor::Half>(), out,
                        rows.num_elements());
  } else {
    tensor::BFloat16ToFloat(encoded[0].data<tensor::BFloat16>(), out,
                            rows.num_elements());
  }
  return rows;
}

void DecodeI8(const uint8_t* codes, const float* scales, size_t rows,
              size_t width, float* out) {
  for (size_t r = 0; r < rows; ++r) {
    const float scale = scales[r];
    for (size_t i = 0; i < width; ++i) {
      out[i] = static_cast<float>(static_cast<int32_t>(codes[i]) - 128) * scale;
    }
    codes += width;
    out += width;
  }
}

}  // namespace hawser::ps
