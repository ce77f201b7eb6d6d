#include "ps/storage/row_layout.h"

#include <cstddef>

#include "optim/update_rule.h"
#include "tensor/dtype.h"

namespace hawser::ps {

RowLayout::RowLayout(size_t width, tensor::DType dtype,
                     const optim::UpdateRule& rule, bool counts_updates,
                     bool has_use)
    : width_(width),
      dtype_(dtype),
      weight_bytes_(width * tensor::ItemBytes(dtype)),
      num_slots_(rule.slots().size()),
      has_step_(counts_updates || dtype != tensor::DType::kF32),
      has_use_(has_use) {
  size_t end = (weight_bytes_ + 3) / 4 * 4;
  for (size_t i = 0; i < num_slots_; ++i) {
    slot_offsets_[i] = end;
    slot_widths_[i] = rule.slots()[i].per_row ? 1 : width;
    end += slot_widths_[i] * sizeof(float);
  }
  step_offset_ = end;
  if (has_step_) end += 4;
  use_offset_ = end;
  if (has_use_) end += 4;
  bytes_ = end;
}

RowLayout RowLayout::OfUses() {
  RowLayout layout;
  layout.has_use_ = true;
  layout.bytes_ = 4;
  return layout;
}

}  // namespace hawser::ps
