#include "ps/storage/memory/row_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "ps/storage/initial_row.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_codec.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_spec.h"
#include "tensor/dtype.h"

namespace hawser::ps {

RowStore::RowStore(std::shared_ptr<const TableFormat> format)
    : format_(std::move(format)),
      slots_(static_cast<uint32_t>(format_->spec().num_shards)),
      slab_(format_->layout().bytes()) {}

absl::Status RowStore::Reserve(size_t count) {
  RETURN_IF_ERROR(slots_.Reserve(count));
  return slab_.Reserve(count);
}

std::byte* RowStore::Insert(uint64_t key, uint64_t hash) {
  const uint32_t slot = slab_.Allocate();
  slots_.Insert(key, hash, slot);
  return slab_.Row(slot);
}

std::byte* RowStore::Create(uint64_t key, uint64_t hash) {
  const RowLayout& layout = format_->layout();
  std::byte* const row = Insert(key, hash);
  ResetState(row);
  const TableSpec& spec = format_->spec();
  if (layout.dtype() == tensor::DType::kF32) {
    WriteInitialRow(spec.initializer, spec.seed, key,
                    {reinterpret_cast<float*>(row), layout.width()});
  } else {
    std::vector<float> weights(layout.width());
    WriteInitialRow(spec.initializer, spec.seed, key, weights);
    WriteWeights(layout, weights.data(), key, row);
  }
  return row;
}

void RowStore::ResetState(std::byte* row) const {
  const RowLayout& layout = format_->layout();
  layout.set_step(row, 0);
  layout.set_use(row, RowUse());
  for (size_t i = 0; i < layout.num_slots(); ++i) {
    std::fill_n(layout.slot(row, i), layout.slot_width(i),
                static_cast<float>(format_->rule().slots()[i].initial));
  }
}

void RowStore::Erase(uint64_t key, uint64_t hash) {
  slab_.Free(slots_.Erase(key, hash));
}

}  // namespace hawser::ps
