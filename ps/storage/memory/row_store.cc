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
      slab_(format_->layout().bytes()),
      changes_(format_->spec().retention.active()) {}

absl::Status RowStore::Reserve(size_t count) {
  RETURN_IF_ERROR(slots_.Reserve(count));
  return slab_.Reserve(count);
}

std::byte* RowStore::Insert(uint64_t key, uint64_t hash) {
  const uint32_t slot = slab_.Allocate();
  slots_.Insert(key, hash, slot);
  changes_.Create(slot);
  return slab_.Row(slot);
}

std::byte* RowStore::Create(uint64_t key, uint64_t hash) {
  std::byte* const row = Insert(key, hash);
  WriteNewRow(*format_, key, row);
  return row;
}

void RowStore::Erase(uint64_t key, uint64_t hash) {
  const uint32_t slot = slots_.Erase(key, hash);
  changes_.Remove(key, slot);
  slab_.Free(slot);
}

uint32_t RowStore::Unload(uint64_t key, uint64_t hash) {
  const uint32_t slot = slots_.Erase(key, hash);
  slab_.Free(slot);
  return changes_.GenerationOf(slot);
}

std::byte* RowStore::Load(uint64_t key, uint64_t hash, uint32_t generation) {
  const uint32_t slot = slab_.Allocate();
  slots_.Insert(key, hash, slot);
  changes_.Load(slot, generation);
  return slab_.Row(slot);
}

}  // namespace hawser::ps
