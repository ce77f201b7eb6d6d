// Updates of the rows of a group by the rules of their keys.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "optim/update_rule.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_codec.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_partition.h"

namespace hawser::ps {

void TablePartition::TouchRows(const Group& group, int64_t now) const {
  const RowLayout& layout = format_->layout();
  for (size_t i = 0; i < group.size; ++i) {
    layout.set_use(group.rows[i], layout.use(group.rows[i]).Pushed(now));
  }
}

optim::UpdateSpan TablePartition::NextUpdate(std::byte* row) const {
  const RowLayout& layout = format_->layout();
  optim::UpdateSpan span;
  span.count = layout.width();
  span.parameter = row;
  for (size_t i = 0; i < layout.num_slots(); ++i) {
    span.slots[i] = layout.slot(row, i);
  }
  const uint32_t step = layout.step(row) + 1;
  layout.set_step(row, step);
  span.step = step;
  return span;
}

void TablePartition::Update(const Group& group, const float* gradients,
                            double learning_rate) const {
  optim::UpdateSpan spans[kGroup];
  for (size_t i = 0; i < group.size; ++i) {
    optim::UpdateSpan& span = spans[i];
    span = NextUpdate(group.rows[i]);
    span.gradient = gradients + group.positions[i] * span.count;
    span.learning_rate = learning_rate;
  }
  format_->options().of_table().rule->Update(std::span(spans, group.size));
}

void TablePartition::UpdateByKey(const Group& group, const float* gradients,
                                 RowRates& rates) const {
  optim::UpdateSpan spans[kGroup];
  const optim::UpdateRule* rule = nullptr;
  // The rows from here on have the same rule.
  size_t begin = 0;
  for (size_t i = 0; i < group.size; ++i) {
    const RowOptions& options = format_->options().Of(group.keys[i]);
    if (rule != options.rule.get()) {
      if (i > begin) rule->Update(std::span(spans + begin, i - begin));
      rule = options.rule.get();
      begin = i;
    }
    optim::UpdateSpan& span = spans[i];
    span = NextUpdate(group.rows[i]);
    span.gradient = gradients + group.positions[i] * span.count;
    span.learning_rate = rates.Of(options, span.step - 1);
  }
  if (rule != nullptr) {
    rule->Update(std::span(spans + begin, group.size - begin));
  }
}

void TablePartition::UpdateNarrow(const Group& group, const float* gradients,
                                  RowRates& rates) const {
  const RowLayout& layout = format_->layout();
  std::vector<float> weights(layout.width());
  for (size_t i = 0; i < group.size; ++i) {
    std::byte* const row = group.rows[i];
    const RowOptions& options = format_->options().Of(group.keys[i]);
    ReadWeights(layout, row, weights.data());
    optim::UpdateSpan span = NextUpdate(row);
    span.parameter = weights.data();
    span.gradient = gradients + group.positions[i] * span.count;
    span.learning_rate = rates.Of(options, span.step - 1);
    options.rule->Update({&span, 1});
    WriteWeights(layout, weights.data(), group.keys[i], row);
  }
}

}  // namespace hawser::ps
