// Finding the rows of a group, in steps that load ahead what the next one
// reads.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ps/storage/key_batch.h"
#include "ps/storage/memory/row_store.h"
#include "ps/storage/prefetch.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_partition.h"

namespace hawser::ps {

void TablePartition::Hash(const KeyBatch& batch, size_t begin,
                          Group& group) const {
  group.size = std::min(kGroup, batch.count - begin);
  for (size_t i = 0; i < group.size; ++i) {
    group.positions[i] = batch.position(begin + i);
    group.keys[i] = batch.keys[group.positions[i]];
    group.hashes[i] = rows_.Hash(group.keys[i]);
    rows_.Prefetch(group.hashes[i]);
  }
}

void TablePartition::FindRows(const Access& access, Group& group) {
  const size_t row_bytes = std::min(access.row_bytes, kMaxPrefetchedBytes);
  const size_t gradient_bytes =
      std::min(format_->layout().width() * sizeof(float), kMaxPrefetchedBytes);
  group.num_elsewhere = 0;
  for (size_t i = 0; i < group.size; ++i) {
    group.rows[i] =
        rows_.FindAtHome(group.keys[i], group.hashes[i], access.changes);
    if (group.rows[i] != nullptr) {
      Prefetch(group.rows[i], row_bytes);
    } else {
      group.elsewhere[group.num_elsewhere++] = static_cast<uint8_t>(i);
      rows_.PrefetchElsewhere(group.hashes[i]);
    }
    if (access.copies != nullptr) {
      std::byte* const copy =
          access.copies + group.positions[i] * access.row_bytes;
      if (access.copies_shared) {
        PrefetchToWrite(copy, row_bytes);
      } else {
        Prefetch(copy, row_bytes);
      }
    }
    if (access.gradients != nullptr) {
      Prefetch(
          access.gradients + group.positions[i] * format_->layout().width(),
          gradient_bytes);
    }
  }
}

void TablePartition::FindElsewhere(const Access& access, Group& group) {
  for (size_t e = 0; e < group.num_elsewhere; ++e) {
    const size_t i = group.elsewhere[e];
    const uint64_t key = group.keys[i];
    const uint64_t hash = group.hashes[i];
    group.rows[i] = rows_.FindElsewhere(key, hash, access.changes);
    if (group.rows[i] == nullptr && access.missing == MissingRows::kCreate) {
      // This batch may have created it since FindRows.
      group.rows[i] = rows_.FindToChange(key, hash);
      if (group.rows[i] == nullptr) group.rows[i] = rows_.Create(key, hash);
    } else if (group.rows[i] != nullptr) {
      Prefetch(group.rows[i], std::min(access.row_bytes, kMaxPrefetchedBytes));
    }
  }
}

}  // namespace hawser::ps
