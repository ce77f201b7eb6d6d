#include "ps/storage/rows/new_row.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "optim/update_rule.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_codec.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/rows/initial_row.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/table_format.h"
#include "tensor/dtype.h"

namespace hawser::ps {

void WriteNewWeights(const TableFormat& format, uint64_t key,
                     std::span<float> weights) {
  WriteInitialRow(format.options().Of(key).initializer, format.spec().seed, key,
                  weights);
}

void WriteNewState(const TableFormat& format, uint64_t key, std::byte* row) {
  const RowLayout& layout = format.layout();
  layout.set_step(row, 0);
  layout.set_use(row, RowUse());
  if (layout.num_slots() == 0) return;
  const optim::UpdateRule& rule = *format.options().Of(key).rule;
  for (size_t i = 0; i < layout.num_slots(); ++i) {
    std::fill_n(layout.slot(row, i), layout.slot_width(i),
                static_cast<float>(rule.slots()[i].initial));
  }
}

void WriteNewRow(const TableFormat& format, uint64_t key, std::byte* row) {
  const RowLayout& layout = format.layout();
  WriteNewState(format, key, row);
  if (layout.dtype() == tensor::DType::kF32) {
    WriteNewWeights(format, key,
                    {reinterpret_cast<float*>(row), layout.width()});
    return;
  }
  std::vector<float> weights(layout.width());
  WriteNewWeights(format, key, weights);
  WriteWeights(layout, weights.data(), key, row);
}

}  // namespace hawser::ps
