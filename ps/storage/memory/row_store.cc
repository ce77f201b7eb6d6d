#include "ps/storage/memory/row_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "ps/storage/memory/row_copy.h"
#include "ps/storage/memory/slot_set.h"
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

uint32_t RowStore::Allocate(uint64_t key, uint64_t hash) {
  const uint32_t slot = slab_.Allocate();
  // It may have the content of a row that was removed since the copy began.
  if (copy_ != nullptr) copy_->Save(slot, slab_.Row(slot));
  slots_.Insert(key, hash, slot);
  return slot;
}

std::byte* RowStore::Insert(uint64_t key, uint64_t hash) {
  const uint32_t slot = Allocate(key, hash);
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
  const uint32_t slot = Allocate(key, hash);
  changes_.Load(slot, generation);
  return slab_.Row(slot);
}

void RowStore::BeginCopy(const SlotSet* slots, RowCopy& copy) {
  copy.Begin(num_slots(), slab_.row_bytes());
  slots_.ForEach([&](uint64_t key, uint32_t slot) {
    if (slots == nullptr || slots->Contains(slot)) copy.Add(key, slot);
  });
  copy.Start();
  copy_ = &copy;
}

bool RowStore::ContinueCopy() {
  if (copy_->Continue(slab_)) return true;
  copy_ = nullptr;
  return false;
}

}  // namespace hawser::ps
