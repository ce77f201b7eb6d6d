// Gradients or weights for the rows of a table.

#ifndef HAWSER_PS_ROW_VALUES_H_
#define HAWSER_PS_ROW_VALUES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// The elements of the rows, in row-major order: in one tensor, or in several
// ones, one after the other, which are then sent without being joined in memory
// first. f32 on the CPU. Shares the memory of the tensors. Thread-compatible.
class RowValues {
 public:
  // f32[keys..., width].
  RowValues(const Tensor& rows) : parts_{rows} {}  // NOLINT: as the tensor.
  // Of any shapes, with the right number of elements in all.
  static RowValues FromParts(std::vector<Tensor> parts) {
    RowValues values;
    values.parts_ = std::move(parts);
    values.has_parts_ = true;
    return values;
  }

  // These values for rows of `expected`, [keys..., width], as flat, contiguous
  // parts without history, for the functions below. Call once.
  // kInvalidArgument: dtype, device, shape or number of elements are wrong; the
  // error calls them `name`.
  absl::StatusOr<RowValues> Checked(const tensor::Shape& expected,
                                    const std::string& name) const;

  // --- Of the values that Checked returned.

  // Elements in all.
  int64_t num_elements() const;
  // `count` elements from number `begin` on: f32[n_i].
  std::vector<Tensor> Slice(int64_t begin, int64_t count) const;
  // The same in one tensor, f32[count], copied unless they are in one.
  Tensor Join(int64_t begin, int64_t count) const;

 private:
  RowValues() = default;

  std::vector<Tensor> parts_;
  bool has_parts_ = false;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROW_VALUES_H_
