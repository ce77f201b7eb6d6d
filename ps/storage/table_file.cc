#include "ps/storage/table_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/atomic_file.h"
#include "google/protobuf/repeated_field.h"
#include "proto/table_files.pb.h"
#include "ps/storage/push_window.h"
#include "ps/storage/pushes/inherited_pushes.h"
#include "ps/storage/record.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

constexpr char kMagic[] = "HWSRTBL1";
constexpr size_t kBlockBytes = size_t{4} << 20;

// Writes records, and counts their bytes.
class Writer {
 public:
  explicit Writer(fs::AtomicFile& file) : file_(file) {}

  absl::Status Begin() {
    return Append(std::as_bytes(std::span(kMagic, kMagicBytes)));
  }
  absl::Status Record(RecordKind kind, std::span<const std::byte> body) {
    const std::span<const std::byte> parts[] = {body};
    RETURN_IF_ERROR(Append(MakeRecordPrefix(kind, parts)));
    return Append(body);
  }
  template <class M>
  absl::Status Message(RecordKind kind, const M& message) {
    const std::string body = message.SerializeAsString();
    return Record(kind, std::as_bytes(std::span(body.data(), body.size())));
  }
  int64_t bytes() const { return bytes_; }

 private:
  absl::Status Append(std::span<const std::byte> bytes) {
    bytes_ += static_cast<int64_t>(bytes.size());
    return file_.Append(bytes);
  }

  fs::AtomicFile& file_;
  int64_t bytes_ = 0;
};

absl::StatusOr<TableFileInfo> ReadInfo(RecordReader& reader) {
  ASSIGN_OR_RETURN(const RecordKind kind, reader.Next());
  if (kind != RecordKind::kHeader) {
    return reader.Damaged("the header is missing");
  }
  ASSIGN_OR_RETURN(const auto header, reader.Parse<v1::TableFileHeader>());
  absl::StatusOr<TableFileInfo> info = FromProto(header);
  if (!info.ok()) return reader.Damaged(std::string(info.status().message()));
  return info;
}

using Clients =
    google::protobuf::RepeatedPtrField<v1::TablePartitionHeader::Client>;

void WriteClient(rpc::Incarnation incarnation, const PushWindow& window,
                 v1::TablePartitionHeader::Client& client) {
  client.set_incarnation(rpc::ToNumber(incarnation));
  client.set_highest(window.highest());
  client.set_applied(window.Bits());
}

void WriteInherited(const TablePartition& partition,
                    v1::TablePartitionHeader& header) {
  *header.mutable_shards() =
      ToProto(ShardRange{partition.first_shard(), partition.num_shards()});
  for (const InheritedPushes::Range& range : partition.inherited_pushes()) {
    v1::TablePartitionHeader::Inherited& to = *header.add_inherited();
    *to.mutable_shards() = ToProto(ShardRange{range.first, range.count});
    for (const auto& [client, window] : range.clients) {
      WriteClient(client, window, *to.add_clients());
    }
  }
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

// Adds the pushes of a partition of the file to `table`, which has the same
// partition, number `index`, or holds its shards in others.
absl::Status ImportPushes(const RecordReader& reader,
                          const v1::TablePartitionHeader& partition,
                          std::optional<size_t> index, SparseTable& table) {
  for (const auto& inherited : partition.inherited()) {
    RETURN_IF_ERROR(ImportInherited(reader, inherited.shards(),
                                    inherited.clients(), table));
  }
  if (!index.has_value()) {
    return ImportInherited(reader, partition.shards(), partition.clients(),
                           table);
  }
  ASSIGN_OR_RETURN(const auto windows,
                   ReadClients(reader, partition.clients()));
  for (const auto& [client, window] : windows) {
    table.partition(*index).ImportPushes(client, window);
  }
  return absl::OkStatus();
}

// Writes the rows of a partition on the disk, in blocks of `block` bytes.
absl::Status WriteRowsOnDisk(const PartitionCopy& copy, size_t row_bytes,
                             size_t block, Writer& writer) {
  std::vector<std::byte> rows;
  const auto add = [&](uint64_t key, const std::byte* row) {
    const auto* const key_bytes = reinterpret_cast<const std::byte*>(&key);
    rows.insert(rows.end(), key_bytes, key_bytes + sizeof(key));
    rows.insert(rows.end(), row, row + (row_bytes - sizeof(key)));
    if (rows.size() < block) return absl::OkStatus();
    absl::Status status = writer.Record(RecordKind::kRows, rows);
    rows.clear();
    return status;
  };
  RETURN_IF_ERROR(copy.ForEachRowOnDisk(add));
  if (rows.empty()) return absl::OkStatus();
  return writer.Record(RecordKind::kRows, rows);
}

}  // namespace

v1::TableFileHeader ToProto(const TableFileInfo& info) {
  v1::TableFileHeader proto;
  proto.set_snapshot(info.snapshot);
  *proto.mutable_table() = ToProto(info.spec);
  *proto.mutable_shards() = ToProto(info.shards);
  proto.set_num_partitions(info.num_partitions);
  proto.set_log(info.log);
  proto.set_time(info.time);
  proto.set_clock(info.clock);
  return proto;
}

absl::StatusOr<TableFileInfo> FromProto(const v1::TableFileHeader& proto) {
  ASSIGN_OR_RETURN(TableSpec spec, FromProto(proto.table()));
  if (proto.clock() < 0 || proto.clock() > WorkerClocks::kMaxClock) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table cannot be at clock ", proto.clock()));
  }
  return TableFileInfo{
      proto.snapshot(),       std::move(spec), FromProto(proto.shards()),
      proto.num_partitions(), proto.log(),     proto.time(),
      proto.clock()};
}

absl::StatusOr<TableFileSize> WriteTableFile(const SparseTable& table,
                                             uint64_t snapshot, int64_t log,
                                             const std::string& path) {
  ASSIGN_OR_RETURN(fs::AtomicFile file, fs::AtomicFile::Create(path));
  Writer writer(file);
  RETURN_IF_ERROR(writer.Begin());
  RETURN_IF_ERROR(writer.Message(
      RecordKind::kHeader,
      ToProto(TableFileInfo{snapshot, table.spec(), table.shards(),
                            static_cast<int64_t>(table.num_partitions()), log,
                            table.time(), table.clock()})));
  TableFileSize size;
  PartitionCopy copy;
  for (size_t p = 0; p < table.num_partitions(); ++p) {
    const TablePartition& partition = table.partition(p);
    const auto pushes = partition.Export(copy);
    const std::vector<std::byte>& rows = copy.rows;
    v1::TablePartitionHeader partition_header;
    const size_t row_bytes = partition.exported_row_bytes();
    partition_header.set_num_rows(copy.num_rows);
    for (const auto& [incarnation, window] : pushes) {
      WriteClient(incarnation, window, *partition_header.add_clients());
    }
    WriteInherited(partition, partition_header);
    size.rows += partition_header.num_rows();
    RETURN_IF_ERROR(writer.Message(RecordKind::kPartition, partition_header));
    const size_t block =
        std::max(kBlockBytes / row_bytes, size_t{1}) * row_bytes;
    for (size_t begin = 0; begin < rows.size(); begin += block) {
      RETURN_IF_ERROR(writer.Record(
          RecordKind::kRows, std::span(rows).subspan(
                                 begin, std::min(block, rows.size() - begin))));
    }
    RETURN_IF_ERROR(WriteRowsOnDisk(copy, row_bytes, block, writer));
  }
  v1::TableFileEnd end;
  end.set_num_rows(size.rows);
  RETURN_IF_ERROR(writer.Message(RecordKind::kEnd, end));
  RETURN_IF_ERROR(file.Commit());
  size.bytes = writer.bytes();
  return size;
}

absl::StatusOr<TableFileInfo> ReadTableFileInfo(const std::string& path) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(path, kMagic));
  return ReadInfo(reader);
}

absl::Status ReadTableFile(const std::string& path, SparseTable& table) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(path, kMagic));
  ASSIGN_OR_RETURN(const TableFileInfo info, ReadInfo(reader));
  if (info.spec != table.spec()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is of the table {", ToProto(info.spec).ShortDebugString(),
        "}, not {", ToProto(table.spec()).ShortDebugString(), "}"));
  }
  const bool same_partitions =
      info.shards == table.shards() &&
      info.num_partitions == static_cast<int64_t>(table.num_partitions());
  const size_t row_bytes = table.partition(0).exported_row_bytes();
  const int64_t later = table.time() - info.time;
  table.AdvanceClock(info.clock);
  size_t partition = 0;
  int64_t rows = 0;
  while (true) {
    ASSIGN_OR_RETURN(const RecordKind kind, reader.Next());
    if (kind == RecordKind::kPartition) {
      ASSIGN_OR_RETURN(const auto header,
                       reader.Parse<v1::TablePartitionHeader>());
      std::optional<size_t> index;
      if (same_partitions && partition < table.num_partitions()) {
        index = partition;
      }
      RETURN_IF_ERROR(ImportPushes(reader, header, index, table));
      ++partition;
    } else if (kind == RecordKind::kRows) {
      if (reader.body().size() % row_bytes != 0) {
        return reader.Damaged("a block does not have whole rows");
      }
      rows += static_cast<int64_t>(reader.body().size() / row_bytes);
      RETURN_IF_ERROR(table.Import(reader.body(), later));
    } else if (kind == RecordKind::kEnd) {
      ASSIGN_OR_RETURN(const auto end, reader.Parse<v1::TableFileEnd>());
      if (end.num_rows() != rows || !reader.at_end()) {
        return reader.Damaged(absl::StrCat("it has ", rows, " rows instead of ",
                                           end.num_rows(),
                                           ", or continues after its end"));
      }
      return absl::OkStatus();
    } else {
      return reader.Damaged(
          absl::StrCat("an unknown record ", static_cast<uint32_t>(kind)));
    }
  }
}

}  // namespace hawser::ps
