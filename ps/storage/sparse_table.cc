#include "ps/storage/sparse_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "telemetry/process_memory.h"

namespace hawser::ps {
namespace {

constexpr int kMaxPartitions = 4096;
// Of the map of keys, per key.
constexpr size_t kKeyBytes = 17;

// The number of rows that fit into three quarters of the memory that the
// process may use.
int64_t RowsThatFit(const RowLayout& layout) {
  const auto memory = static_cast<int64_t>(telemetry::UsableMemoryBytes());
  return memory / 4 * 3 / static_cast<int64_t>(layout.bytes() + kKeyBytes);
}

// Positions of keys, grouped by partition, in order within each.
class PartitionedKeys {
 public:
  // `partition_of_shard` has an entry per shard. Entries of num_partitions and
  // more are in no group.
  PartitionedKeys(std::span<const uint64_t> keys,
                  const std::vector<uint16_t>& partition_of_shard,
                  size_t num_partitions)
      : ends_(num_partitions + 2),
        positions_(std::make_unique_for_overwrite<uint32_t[]>(keys.size())) {
    const auto partitions =
        std::make_unique_for_overwrite<uint16_t[]>(keys.size());
    const auto num_shards = static_cast<uint32_t>(partition_of_shard.size());
    const auto none = static_cast<uint16_t>(num_partitions);
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint32_t shard = SplitHash(HashKey(keys[i]), num_shards).part;
      const uint16_t partition =
          std::min(partition_of_shard.data()[shard], none);
      partitions[i] = partition;
      ++ends_[partition + 1];
    }
    for (size_t p = 1; p < ends_.size(); ++p) ends_[p] += ends_[p - 1];
    std::vector<uint32_t> next(ends_.begin(), ends_.end() - 1);
    for (size_t i = 0; i < keys.size(); ++i) {
      positions_[next[partitions[i]]++] = static_cast<uint32_t>(i);
    }
  }

  // Of the keys in group `partition`; the last group is those in none.
  std::span<const uint32_t> positions(size_t partition) const {
    return {&positions_[ends_[partition]],
            ends_[partition + 1] - ends_[partition]};
  }

 private:
  // Group p ends at ends_[p + 1].
  std::vector<uint32_t> ends_;
  const std::unique_ptr<uint32_t[]> positions_;
};

}  // namespace

absl::StatusOr<ShardRange> ShardsOf(ServerPlace place, int64_t num_shards) {
  if (place.index < 0 || place.index >= place.num_servers ||
      place.num_servers > num_shards) {
    return absl::InvalidArgumentError(
        absl::StrCat("server ", place.index, " of ", place.num_servers,
                     " cannot hold shards of a table with ", num_shards));
  }
  const int64_t first = place.index * num_shards / place.num_servers;
  return ShardRange{first,
                    (place.index + 1) * num_shards / place.num_servers - first};
}

absl::StatusOr<std::unique_ptr<SparseTable>> SparseTable::Create(
    const TableSpec& spec, const SparseTableOptions& options) {
  if (options.num_partitions < 0 || options.num_partitions > kMaxPartitions) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table has 1 to ", kMaxPartitions, " partitions, not ",
                     options.num_partitions));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const TableFormat> format,
                   TableFormat::Create(spec));
  const ShardRange shards =
      options.shards.value_or(ShardRange{0, spec.num_shards});
  if (shards.first < 0 || shards.first > spec.num_shards || shards.count < 1 ||
      shards.count > spec.num_shards - shards.first) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", spec.name, "\": ", shards.count, " shards from ",
        shards.first, " on are not within its ", spec.num_shards, " shards"));
  }
  int64_t partitions = options.num_partitions;
  if (partitions == 0) {
    partitions =
        std::min(4 * std::max(std::thread::hardware_concurrency(), 1u), 256u);
  }
  if (options.max_rows < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", spec.name, "\": at most ", options.max_rows, " rows"));
  }
  const int64_t max_rows =
      options.max_rows > 0 ? options.max_rows : RowsThatFit(format->layout());
  std::unique_ptr<RowDisk> disk;
  if (format->spec().storage.kind == TableStorage::Kind::kRocksDb) {
    if (options.disk == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "table \"", spec.name,
          "\" keeps rows in RocksDB, and this server has no disk for them: set "
          "ps::TableServiceOptions::disk, or hawser ps --disk-dir"));
    }
    ASSIGN_OR_RETURN(
        disk, options.disk->Create(spec.name,
                                   RowTier::StoredBytes(format->layout())));
  }
  return std::unique_ptr<SparseTable>(new SparseTable(
      std::move(format), shards, std::move(disk),
      std::min(partitions, shards.count), max_rows, options.clock));
}

SparseTable::SparseTable(std::shared_ptr<const TableFormat> format,
                         ShardRange shards, std::unique_ptr<RowDisk> disk,
                         int64_t partitions, int64_t max_rows,
                         async::Clock* clock)
    : format_(std::move(format)),
      time_(std::make_shared<TableTime>(clock)),
      disk_(std::move(disk)),
      shards_(shards),
      partition_of_shard_(static_cast<size_t>(format_->spec().num_shards),
                          kNotHeld) {
  std::vector<int64_t> sizes(static_cast<size_t>(partitions));
  for (int64_t i = 0; i < shards.count; ++i) {
    const auto partition = static_cast<uint16_t>(i * partitions / shards.count);
    partition_of_shard_[static_cast<size_t>(shards.first + i)] = partition;
    ++sizes[partition];
  }
  int64_t first_shard = shards.first;
  for (const int64_t size : sizes) {
    partitions_.push_back(std::make_unique<TablePartition>(
        format_, time_,
        PartitionShare{.max_rows = std::max<int64_t>(max_rows / partitions, 1),
                       .first_shard = first_shard,
                       .num_shards = size},
        disk_.get()));
    first_shard += size;
  }
}

absl::Status SparseTable::CheckSize(std::span<const uint64_t> keys,
                                    size_t numbers) const {
  const size_t width = format_->layout().width();
  if (numbers == keys.size() * width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "table \"", spec().name, "\": ", keys.size(), " rows of ", width,
      " numbers are ", keys.size() * width, " numbers, not ", numbers));
}

absl::Status SparseTable::NotHeld(uint64_t key) const {
  const auto shard =
      SplitHash(HashKey(key), static_cast<uint32_t>(spec().num_shards)).part;
  return absl::FailedPreconditionError(
      absl::StrCat("table \"", spec().name, "\": key ", key, " is in shard ",
                   shard, "; this server holds the shards ", shards_.first,
                   " to ", shards_.first + shards_.count - 1));
}

absl::Status SparseTable::VisitPartitions(
    std::span<const uint64_t> keys,
    absl::FunctionRef<absl::Status(TablePartition&, const KeyBatch&)> visit) {
  if (keys.size() > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("a request of ", keys.size(), " keys is too large"));
  }
  const PartitionedKeys partitioned(keys, partition_of_shard_,
                                    partitions_.size());
  if (const auto none = partitioned.positions(partitions_.size());
      !none.empty()) {
    return NotHeld(keys[none[0]]);
  }
  for (size_t p = 0; p < partitions_.size(); ++p) {
    const std::span<const uint32_t> positions = partitioned.positions(p);
    if (positions.empty()) continue;
    RETURN_IF_ERROR(visit(*partitions_[p],
                          {keys.data(), positions.size(), positions.data()}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PartitionRange>> SparseTable::SplitOrdered(
    std::span<const uint64_t> keys) const {
  std::vector<PartitionRange> ranges;
  const auto num_shards = static_cast<uint32_t>(spec().num_shards);
  uint64_t previous = 0;
  uint16_t current = kNotHeld;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t hash = HashKey(keys[i]);
    if (i > 0 && hash <= previous) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table \"", spec().name, "\": key ", i, " of the request, ", keys[i],
          hash == previous ? ", repeats the one before"
                           : ", is not in the order of the hashes"));
    }
    previous = hash;
    const uint16_t partition =
        partition_of_shard_.data()[SplitHash(hash, num_shards).part];
    if (partition == kNotHeld) return NotHeld(keys[i]);
    if (partition != current) {
      ranges.push_back({partitions_[partition].get(), i, i});
      current = partition;
    }
    ranges.back().end = i + 1;
  }
  return ranges;
}

absl::Status SparseTable::Import(std::span<const std::byte> rows,
                                 int64_t later) {
  const size_t row_bytes = partitions_[0]->exported_row_bytes();
  const auto num_shards = static_cast<uint32_t>(spec().num_shards);
  std::vector<std::vector<std::byte>> parts(partitions_.size());
  for (size_t begin = 0; begin + row_bytes <= rows.size(); begin += row_bytes) {
    uint64_t key = 0;
    std::memcpy(&key, &rows[begin], sizeof(key));
    const uint16_t partition =
        partition_of_shard_[SplitHash(HashKey(key), num_shards).part];
    if (partition == kNotHeld) continue;
    const auto row = rows.subspan(begin, row_bytes);
    parts[partition].insert(parts[partition].end(), row.begin(), row.end());
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    RETURN_IF_ERROR(partitions_[i]->Import(parts[i], later));
  }
  return absl::OkStatus();
}

absl::Status SparseTable::Erase(std::span<const uint64_t> keys) {
  const PartitionedKeys partitioned(keys, partition_of_shard_,
                                    partitions_.size());
  for (size_t p = 0; p < partitions_.size(); ++p) {
    const std::span<const uint32_t> positions = partitioned.positions(p);
    if (positions.empty()) continue;
    RETURN_IF_ERROR(partitions_[p]->Erase(
        {keys.data(), positions.size(), positions.data()}));
  }
  return absl::OkStatus();
}

bool SparseTable::KnowsSnapshot(uint64_t snapshot) const {
  return std::all_of(partitions_.begin(), partitions_.end(),
                     [&](const auto& partition) {
                       return partition->KnowsSnapshot(snapshot);
                     });
}

void SparseTable::BeginChanges(uint64_t snapshot) {
  for (const auto& partition : partitions_) partition->BeginChanges(snapshot);
}

absl::Status SparseTable::RemoveRows(std::span<const uint64_t> keys,
                                     const PushId& id) {
  return VisitPartitions(keys,
                         [&](TablePartition& partition, const KeyBatch& batch) {
                           partition.RemoveRows(batch, id);
                           return absl::OkStatus();
                         });
}

void SparseTable::Forget(rpc::Incarnation client) {
  for (const auto& partition : partitions_) partition->Forget(client);
}

absl::Status SparseTable::Pull(std::span<const uint64_t> keys,
                               std::span<float> rows, MissingRows missing) {
  RETURN_IF_ERROR(CheckSize(keys, rows.size()));
  return VisitPartitions(keys,
                         [&](TablePartition& partition, const KeyBatch& batch) {
                           return partition.Pull(batch, missing, rows.data());
                         });
}

absl::Status SparseTable::PullWholeRows(std::span<const uint64_t> keys,
                                        std::span<std::byte> rows,
                                        MissingRows missing) {
  HAWSER_CHECK(rows.size() == keys.size() * format_->layout().bytes())
      << rows.size() << " bytes for " << keys.size() << " rows";
  return VisitPartitions(
      keys, [&](TablePartition& partition, const KeyBatch& batch) {
        return partition.PullWholeRows(batch, missing, rows.data());
      });
}

absl::Status SparseTable::Push(std::span<const uint64_t> keys,
                               std::span<const float> gradients,
                               const PushRate& rate) {
  RETURN_IF_ERROR(CheckSize(keys, gradients.size()));
  return VisitPartitions(
      keys, [&](TablePartition& partition, const KeyBatch& batch) {
        return partition.Push(batch, gradients.data(), rate).status();
      });
}

void SparseTable::AdvanceClock(int64_t clock) {
  int64_t current = clock_.load(std::memory_order_relaxed);
  while (current < clock && !clock_.compare_exchange_weak(
                                current, clock, std::memory_order_relaxed)) {
  }
}

void SparseTable::ForEachRow(
    absl::FunctionRef<void(uint64_t key, const std::byte* row)> visit) const {
  for (const auto& partition : partitions_) partition->ForEachRow(visit);
}

int64_t SparseTable::num_rows() const {
  int64_t rows = 0;
  for (const auto& partition : partitions_) rows += partition->num_rows();
  return rows;
}

RetentionCounts SparseTable::retention_counts() const {
  RetentionCounts counters;
  for (const auto& partition : partitions_)
    counters += partition->retention_counts();
  return counters;
}

size_t SparseTable::bytes() const {
  size_t bytes = 0;
  for (const auto& partition : partitions_) bytes += partition->bytes();
  return bytes;
}

}  // namespace hawser::ps
