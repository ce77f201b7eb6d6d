// Location of the parts of a row in memory.

#ifndef HAWSER_PS_STORAGE_ROW_LAYOUT_H_
#define HAWSER_PS_STORAGE_ROW_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "optim/update_rule.h"
#include "ps/storage/retention/row_use.h"
#include "tensor/dtype.h"

namespace hawser::ps {

// A row is contiguous: its weights, then, aligned to 4 bytes, the slots of its
// update rule in f32, the number of its updates, if the rule, a schedule or
// stochastic rounding depends on it, and its RowUse, if rows are removed.
//
// A plain value.
class RowLayout {
 public:
  // `counts_updates`: whether rows have the number of their updates.
  RowLayout(size_t width, tensor::DType dtype, const optim::UpdateRule& rule,
            bool counts_updates, bool has_use);

  // Of rows that have a RowUse and nothing else.
  static RowLayout OfUses();

  // Number of weights.
  size_t width() const { return width_; }
  // f32, f16 or bf16.
  tensor::DType dtype() const { return dtype_; }
  size_t bytes() const { return bytes_; }
  size_t weight_bytes() const { return weight_bytes_; }

  size_t num_slots() const { return num_slots_; }
  // Number of values of slot `i`, and the place of the first in `row`.
  size_t slot_width(size_t i) const { return slot_widths_[i]; }
  float* slot(std::byte* row, size_t i) const {
    return reinterpret_cast<float*>(row + slot_offsets_[i]);
  }

  // Number of updates so far; 0 if nothing depends on it.
  uint32_t step(const std::byte* row) const {
    uint32_t step = 0;
    if (has_step_) std::memcpy(&step, row + step_offset_, sizeof(step));
    return step;
  }
  void set_step(std::byte* row, uint32_t step) const {
    if (has_step_) std::memcpy(row + step_offset_, &step, sizeof(step));
  }

  // Whether rows have a RowUse. Without, the following do nothing, except for
  // use().
  bool has_use() const { return has_use_; }
  RowUse use(const std::byte* row) const {
    uint32_t bits = 0;
    std::memcpy(&bits, row + use_offset_, sizeof(bits));
    return RowUse::FromBits(bits);
  }
  void set_use(std::byte* row, RowUse use) const {
    const uint32_t bits = use.bits();
    if (has_use_) std::memcpy(row + use_offset_, &bits, sizeof(bits));
  }

 private:
  RowLayout() = default;

  size_t width_ = 0;
  tensor::DType dtype_ = tensor::DType::kF32;
  size_t weight_bytes_ = 0;
  size_t num_slots_ = 0;
  std::array<size_t, optim::kMaxSlots> slot_widths_ = {};
  std::array<size_t, optim::kMaxSlots> slot_offsets_ = {};
  bool has_step_ = false;
  size_t step_offset_ = 0;
  bool has_use_ = false;
  size_t use_offset_ = 0;
  size_t bytes_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_ROW_LAYOUT_H_
