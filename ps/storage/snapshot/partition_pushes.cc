#include "ps/storage/snapshot/partition_pushes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "google/protobuf/repeated_field.h"
#include "proto/table_files.pb.h"
#include "ps/storage/push_window.h"
#include "ps/storage/pushes/inherited_pushes.h"
#include "ps/storage/record.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using Clients =
    google::protobuf::RepeatedPtrField<v1::TablePartitionHeader::Client>;

void WriteClient(rpc::Incarnation incarnation, const PushWindow& window,
                 v1::TablePartitionHeader::Client& client) {
  client.set_incarnation(rpc::ToNumber(incarnation));
  client.set_highest(window.highest());
  client.set_applied(window.Bits());
}

absl::StatusOr<std::map<rpc::Incarnation, PushWindow>> ReadClients(
    const RecordReader& reader, const Clients& clients) {
  std::map<rpc::Incarnation, PushWindow> windows;
  for (const auto& client : clients) {
    const std::optional<PushWindow> pushes =
        PushWindow::FromBits(client.highest(), client.applied());
    if (!pushes.has_value()) {
      return reader.Damaged("the pushes of a client have a wrong size");
    }
    windows[rpc::Incarnation{client.incarnation()}] = *pushes;
  }
  return windows;
}

// Adds pushes to the rows of `shards` to the partitions that hold them.
absl::Status ImportInherited(const RecordReader& reader,
                             const v1::TableShards& shards,
                             const Clients& clients, SparseTable& table) {
  ASSIGN_OR_RETURN(const auto windows, ReadClients(reader, clients));
  if (shards.first_shard() < 0 || shards.num_shards() < 0 ||
      shards.num_shards() > table.spec().num_shards - shards.first_shard()) {
    return reader.Damaged("the shards of a partition are out of range");
  }
  const int64_t end = shards.first_shard() + shards.num_shards();
  for (size_t p = 0; p < table.num_partitions(); ++p) {
    TablePartition& partition = table.partition(p);
    const int64_t first =
        std::max(shards.first_shard(), partition.first_shard());
    const int64_t last =
        std::min(end, partition.first_shard() + partition.num_shards());
    if (first < last) {
      partition.ImportPushes(
          InheritedPushes::Range{first, last - first, windows});
    }
  }
  return absl::OkStatus();
}

}  // namespace

void WritePushes(const TablePartition& partition, const AppliedPushes& pushes,
                 v1::TablePartitionHeader& header) {
  for (const auto& [incarnation, window] : pushes.clients) {
    WriteClient(incarnation, window, *header.add_clients());
  }
  *header.mutable_shards() =
      ToProto(ShardRange{partition.first_shard(), partition.num_shards()});
  for (const InheritedPushes::Range& range : pushes.inherited) {
    v1::TablePartitionHeader::Inherited& to = *header.add_inherited();
    *to.mutable_shards() = ToProto(ShardRange{range.first, range.count});
    for (const auto& [client, window] : range.clients) {
      WriteClient(client, window, *to.add_clients());
    }
  }
}

absl::Status ReadPushes(const RecordReader& reader,
                        const v1::TablePartitionHeader& header,
                        std::optional<size_t> index, SparseTable& table) {
  for (const auto& inherited : header.inherited()) {
    RETURN_IF_ERROR(ImportInherited(reader, inherited.shards(),
                                    inherited.clients(), table));
  }
  if (!index.has_value()) {
    return ImportInherited(reader, header.shards(), header.clients(), table);
  }
  ASSIGN_OR_RETURN(const auto windows, ReadClients(reader, header.clients()));
  for (const auto& [client, window] : windows) {
    table.partition(*index).ImportPushes(client, window);
  }
  return absl::OkStatus();
}

}  // namespace hawser::ps
