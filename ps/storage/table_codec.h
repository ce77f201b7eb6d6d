// Conversions between tables' descriptions and the messages of proto/ps.proto.

#ifndef HAWSER_PS_STORAGE_TABLE_CODEC_H_
#define HAWSER_PS_STORAGE_TABLE_CODEC_H_

#include "absl/status/statusor.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"

namespace hawser::v1 {
class TableDescription;
class TableShards;
}  // namespace hawser::v1

namespace hawser::ps {

v1::TableDescription ToProto(const TableSpec& spec);

// Normalizes the description. kInvalidArgument: NormalizeTableSpec rejects it,
// or its dtype or initializer is unknown.
absl::StatusOr<TableSpec> FromProto(const v1::TableDescription& proto);

v1::TableShards ToProto(ShardRange shards);
ShardRange FromProto(const v1::TableShards& proto);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_CODEC_H_
