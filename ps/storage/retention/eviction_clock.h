// Choice of a row that leaves memory.

#ifndef HAWSER_PS_STORAGE_RETENTION_EVICTION_CLOCK_H_
#define HAWSER_PS_STORAGE_RETENTION_EVICTION_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/table_format.h"

namespace hawser::ps {

// The entry at `position`, which moves to the next one; loads the use of a
// later one to the cache.
std::optional<RowStore::Entry> NextEntry(const RowStore& rows, size_t row_bytes,
                                         size_t& position);

// CLOCK: a hand goes round the rows. A row that had two pushes since the hand
// passed, or one if it is older, stays; another is chosen. A row that had one
// push in all thus goes before those that return. After kMaxConsidered rows,
// the one of these that was pushed to earliest is chosen, which bounds the time
// of a push.
//
// Thread-compatible.
class EvictionClock {
 public:
  static constexpr size_t kMaxConsidered = 64;

  // Uses that are state of the table are in its snapshots: their changes are
  // marked in the store.
  enum class Uses { kState, kCache };

  EvictionClock(std::shared_ptr<const TableFormat> format, Uses uses)
      : format_(std::move(format)), uses_(uses) {}

  // Begins with another push. Rows of its keys are not chosen.
  void Begin(const KeyBatch& batch) {
    batch_ = batch;
    hashes_.clear();
  }

  // Returns a row, which the caller removes; nullopt if all rows are of keys of
  // the push. `now` is in seconds of TableTime.
  std::optional<RowStore::Entry> Choose(RowStore& rows, int64_t now);

 private:
  bool IsInBatch(uint64_t key);

  const std::shared_ptr<const TableFormat> format_;
  const Uses uses_;
  // A position in the store.
  size_t hand_ = 0;
  KeyBatch batch_;
  // The hashes of its keys in order, once they are needed.
  std::vector<uint64_t> hashes_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RETENTION_EVICTION_CLOCK_H_
