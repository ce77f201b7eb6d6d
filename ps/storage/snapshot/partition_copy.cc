#include "ps/storage/snapshot/partition_copy.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_layout.h"

namespace hawser::ps {

absl::Status PartitionCopy::ForEachRowOnDisk(
    const RowLayout& layout,
    absl::FunctionRef<absl::Status(uint64_t, const std::byte*)> visit) const {
  if (disk == nullptr) return absl::OkStatus();
  const absl::flat_hash_set<uint64_t> in_memory(keys_in_memory.begin(),
                                                keys_in_memory.end());
  std::vector<std::byte> copy(layout.bytes());
  return disk->ForEach(
      disk_range, [&](uint64_t key, const std::byte* row) -> absl::Status {
        if (in_memory.contains(key)) return absl::OkStatus();
        RowUse use;
        if (uses.has_value()) {
          const auto found = uses->find(key);
          if (found == uses->end()) return absl::OkStatus();
          use = RowUse::FromBits(found->second);
        } else if (RowTier::GenerationOf(layout, row) < disk_generation) {
          return absl::OkStatus();
        }
        std::memcpy(copy.data(), row, copy.size());
        layout.set_use(copy.data(), use);
        return visit(key, copy.data());
      });
}

}  // namespace hawser::ps
