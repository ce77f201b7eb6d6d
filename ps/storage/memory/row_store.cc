#include "ps/storage/memory/row_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "ps/storage/rows/new_row.h"
#include "ps/storage/table_format.h"

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
  std::byte* const row = Insert(key, hash);
  WriteNewRow(*format_, key, row);
  return row;
}

void RowStore::Erase(uint64_t key, uint64_t hash) {
  slab_.Free(slots_.Erase(key, hash));
}

}  // namespace hawser::ps
