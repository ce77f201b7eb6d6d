// Forms in which rows and gradients travel.

#ifndef HAWSER_PS_ROW_ENCODING_H_
#define HAWSER_PS_ROW_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

enum class RowEncoding {
  kF32,
  // Half of the bytes. Numbers are rounded to nearest, even.
  kF16,
  kBF16,
  // A quarter of the bytes, and 4 bytes for each row: the scale, which is 1/127
  // of the largest magnitude in the row. Numbers are rounded to multiples of
  // it. A row with a number that is not finite becomes NaN.
  kI8,
  // 12 bytes for each number that is not zero, as it is: for gradients with few
  // of them, such as those of TopKGradients. Of gradients alone; rows that are
  // read travel as f32.
  kNonZero,
};

// Returns the tensors of a message for `rows`, f32[n, width], contiguous, on
// the CPU:
//
//   kF32, kF16, kBF16  [n, width] of that dtype. kF32 is `rows` itself.
//   kI8                u8[n, width], each number divided by its row's scale,
//                      plus 128; then the scales, f32[n].
//   kNonZero           f32[k], the numbers that are not zero; then their
//                      positions among the n * width, i64[k], ascending.
std::vector<Tensor> EncodeRows(const Tensor& rows, RowEncoding encoding);

// Returns the rows of such tensors, except for kNonZero: f32 of `shape`, [n,
// width].
// kInvalidArgument: dtypes or shapes are wrong.
absl::StatusOr<Tensor> DecodeRows(std::vector<Tensor> tensors,
                                  const tensor::Shape& shape);

// The same for kI8, to memory of the caller.
//
//   codes   [rows, width].
//   scales  [rows].
//   out     [rows, width].
void DecodeI8(const uint8_t* codes, const float* scales, size_t rows,
              size_t width, float* out);

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROW_ENCODING_H_
