// The pushes that the rows of a partition contain, in the header of these rows
// in a file.

#ifndef HAWSER_PS_STORAGE_SNAPSHOT_PARTITION_PUSHES_H_
#define HAWSER_PS_STORAGE_SNAPSHOT_PARTITION_PUSHES_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "ps/storage/record.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"

namespace hawser::v1 {
class TablePartitionHeader;
}  // namespace hawser::v1

namespace hawser::ps {

// Writes `pushes`, which TablePartition::Export returned, and the shards of the
// partition.
void WritePushes(const TablePartition& partition, const AppliedPushes& pushes,
                 v1::TablePartitionHeader& header);

// Adds the pushes in `header`, which `reader` has just read, to `table`, which
// has the same partition, number `index`, or holds its shards in others.
//
//   kDataLoss  the header is damaged.
absl::Status ReadPushes(const RecordReader& reader,
                        const v1::TablePartitionHeader& header,
                        std::optional<size_t> index, SparseTable& table);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_SNAPSHOT_PARTITION_PUSHES_H_
