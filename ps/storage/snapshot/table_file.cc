#include "ps/storage/snapshot/table_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include "proto/table_files.pb.h"
#include "ps/storage/record.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/snapshot/partition_copy.h"
#include "ps/storage/snapshot/partition_pushes.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/worker_clocks.h"

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

// Collects the rows of a partition in blocks.
class RowWriter {
 public:
  RowWriter(size_t row_bytes, Writer& writer)
      : row_bytes_(row_bytes),
        block_(std::max(kBlockBytes / row_bytes, size_t{1}) * row_bytes),
        writer_(writer) {}

  // Rows with their keys.
  absl::Status Write(std::span<const std::byte> rows) {
    for (size_t begin = 0; begin < rows.size(); begin += block_) {
      RETURN_IF_ERROR(
          Record(rows.subspan(begin, std::min(block_, rows.size() - begin))));
    }
    return absl::OkStatus();
  }
  absl::Status Add(uint64_t key, const std::byte* row) {
    const auto* const key_bytes = reinterpret_cast<const std::byte*>(&key);
    rows_.insert(rows_.end(), key_bytes, key_bytes + sizeof(key));
    rows_.insert(rows_.end(), row, row + (row_bytes_ - sizeof(key)));
    return rows_.size() < block_ ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    if (rows_.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(Record(rows_));
    rows_.clear();
    return absl::OkStatus();
  }

  int64_t num_rows() const { return num_rows_; }

 private:
  absl::Status Record(std::span<const std::byte> rows) {
    num_rows_ += static_cast<int64_t>(rows.size() / row_bytes_);
    return writer_.Record(RecordKind::kRows, rows);
  }

  const size_t row_bytes_;
  const size_t block_;
  Writer& writer_;
  // Those of Add.
  std::vector<std::byte> rows_;
  int64_t num_rows_ = 0;
};

absl::Status WriteRemoved(std::span<const uint64_t> keys, Writer& writer) {
  constexpr size_t kBlockKeys = kBlockBytes / sizeof(uint64_t);
  for (size_t begin = 0; begin < keys.size(); begin += kBlockKeys) {
    RETURN_IF_ERROR(
        writer.Record(RecordKind::kRemoved,
                      std::as_bytes(keys.subspan(
                          begin, std::min(kBlockKeys, keys.size() - begin)))));
  }
  return absl::OkStatus();
}

// Writes a partition. Returns the number of its rows.
absl::StatusOr<int64_t> WritePartition(TablePartition& partition,
                                       const RowLayout& layout,
                                       const SnapshotCut& cut,
                                       PartitionCopy& copy, Writer& writer) {
  ASSIGN_OR_RETURN(const auto pushes, partition.Export(copy, cut));
  v1::TablePartitionHeader header;
  WritePushes(partition, pushes, header);
  RETURN_IF_ERROR(writer.Message(RecordKind::kPartition, header));
  RETURN_IF_ERROR(WriteRemoved(copy.removed, writer));
  RowWriter rows(partition.exported_row_bytes(), writer);
  RETURN_IF_ERROR(rows.Write(copy.rows.rows()));
  RETURN_IF_ERROR(copy.ForEachRowOnDisk(
      layout,
      [&](uint64_t key, const std::byte* row) { return rows.Add(key, row); }));
  RETURN_IF_ERROR(rows.Flush());
  return rows.num_rows();
}

// Whether `info` continues the file `before`, or has all rows if that is null.
absl::Status CheckLink(const std::string& path, const TableFileInfo& info,
                       const std::string& before_path,
                       const TableFileInfo* before) {
  if (before == nullptr) {
    if (!info.base.has_value()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path, " is an increment of snapshot \"", info.base->name,
                     "\", whose file is missing"));
  }
  const int64_t increments =
      before->base.has_value() ? before->base->increments : 0;
  if (info.base.has_value() && info.base->snapshot == before->snapshot &&
      info.base->increments == increments + 1 && info.spec == before->spec &&
      info.shards == before->shards &&
      info.num_partitions == before->num_partitions) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      path, " does not continue ", before_path,
      ": that file is of another snapshot than the one that was its base"));
}

// Reads the records after the header of a file.
class FileReader {
 public:
  FileReader(const TableFileInfo& info, int64_t later, bool takes_pushes,
             SparseTable& table, RecordReader& reader)
      : is_increment_(info.base.has_value()),
        same_partitions_(info.shards == table.shards() &&
                         info.num_partitions ==
                             static_cast<int64_t>(table.num_partitions())),
        later_(later),
        takes_pushes_(takes_pushes),
        table_(table),
        reader_(reader) {}

  absl::Status Read() {
    while (true) {
      ASSIGN_OR_RETURN(const RecordKind kind, reader_.Next());
      if (kind == RecordKind::kEnd) return End();
      RETURN_IF_ERROR(Record(kind));
    }
  }

 private:
  absl::Status Record(RecordKind kind) {
    if (kind == RecordKind::kPartition) {
      ASSIGN_OR_RETURN(const auto header,
                       reader_.Parse<v1::TablePartitionHeader>());
      std::optional<size_t> index;
      if (same_partitions_ && partition_ < table_.num_partitions()) {
        index = partition_;
      }
      ++partition_;
      return takes_pushes_ ? ReadPushes(reader_, header, index, table_)
                           : absl::OkStatus();
    }
    const std::span<const std::byte> body = reader_.body();
    if (kind == RecordKind::kRows) {
      const size_t row_bytes = table_.partition(0).exported_row_bytes();
      if (body.size() % row_bytes != 0) {
        return reader_.Damaged("a block does not have whole rows");
      }
      rows_ += static_cast<int64_t>(body.size() / row_bytes);
      return table_.Import(body, later_);
    }
    if (kind == RecordKind::kRemoved && is_increment_) {
      if (body.size() % sizeof(uint64_t) != 0) {
        return reader_.Damaged("a block does not have whole keys");
      }
      std::vector<uint64_t> keys(body.size() / sizeof(uint64_t));
      if (!keys.empty()) std::memcpy(keys.data(), body.data(), body.size());
      return table_.Erase(keys);
    }
    return reader_.Damaged(
        absl::StrCat("an unknown record ", static_cast<uint32_t>(kind)));
  }

  absl::Status End() {
    ASSIGN_OR_RETURN(const auto end, reader_.Parse<v1::TableFileEnd>());
    if (end.num_rows() == rows_ && reader_.at_end()) return absl::OkStatus();
    return reader_.Damaged(absl::StrCat("it has ", rows_, " rows instead of ",
                                        end.num_rows(),
                                        ", or continues after its end"));
  }

  const bool is_increment_;
  const bool same_partitions_;
  const int64_t later_;
  const bool takes_pushes_;
  SparseTable& table_;
  RecordReader& reader_;
  size_t partition_ = 0;
  int64_t rows_ = 0;
};

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
  if (info.base.has_value()) {
    v1::SnapshotBase& base = *proto.mutable_base();
    base.set_name(info.base->name);
    base.set_snapshot(info.base->snapshot);
    base.set_increments(info.base->increments);
  }
  return proto;
}

absl::StatusOr<TableFileInfo> FromProto(const v1::TableFileHeader& proto) {
  ASSIGN_OR_RETURN(TableSpec spec, FromProto(proto.table()));
  if (proto.clock() < 0 || proto.clock() > WorkerClocks::kMaxClock) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table cannot be at clock ", proto.clock()));
  }
  TableFileInfo info{
      proto.snapshot(),       std::move(spec), FromProto(proto.shards()),
      proto.num_partitions(), proto.log(),     proto.time(),
      proto.clock()};
  if (proto.has_base()) {
    const v1::SnapshotBase& base = proto.base();
    if (base.increments() < 1 ||
        base.increments() > SnapshotBase::kMaxIncrements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it is increment number ", base.increments(), " of a snapshot"));
    }
    info.base = {base.name(), base.snapshot(), base.increments()};
  }
  return info;
}

absl::StatusOr<TableFileSize> WriteTableFile(const SparseTable& table,
                                             const TableFileOptions& options,
                                             const std::string& path) {
  ASSIGN_OR_RETURN(fs::AtomicFile file, fs::AtomicFile::Create(path));
  Writer writer(file);
  RETURN_IF_ERROR(writer.Begin());
  RETURN_IF_ERROR(writer.Message(
      RecordKind::kHeader,
      ToProto(TableFileInfo{options.snapshot, table.spec(), table.shards(),
                            static_cast<int64_t>(table.num_partitions()),
                            options.log, table.time(), table.clock(),
                            options.base})));
  const SnapshotCut cut{options.snapshot,
                        options.base.has_value() ? options.base->snapshot : 0};
  TableFileSize size;
  PartitionCopy copy;
  for (size_t p = 0; p < table.num_partitions(); ++p) {
    ASSIGN_OR_RETURN(const int64_t rows,
                     WritePartition(table.partition(p), table.format().layout(),
                                    cut, copy, writer));
    size.rows += rows;
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

absl::Status ReadTableFiles(std::span<const std::string> paths,
                            SparseTable& table, ReadFor use) {
  std::vector<TableFileInfo> infos;
  for (size_t i = 0; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(const TableFileInfo info, ReadTableFileInfo(paths[i]));
    if (info.spec != table.spec()) {
      return absl::InvalidArgumentError(absl::StrCat(
          paths[i], " is of the table {", ToProto(info.spec).ShortDebugString(),
          "}, not {", ToProto(table.spec()).ShortDebugString(), "}"));
    }
    RETURN_IF_ERROR(
        i == 0 ? CheckLink(paths[i], info, "", nullptr)
               : CheckLink(paths[i], info, paths[i - 1], &infos.back()));
    infos.push_back(info);
  }
  if (!infos.empty()) table.AdvanceClock(infos.back().clock);
  for (size_t i = 0; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(paths[i], kMagic));
    ASSIGN_OR_RETURN(const TableFileInfo info, ReadInfo(reader));
    // Earlier files have some of the pushes of the last one.
    const bool is_last = i + 1 == paths.size();
    RETURN_IF_ERROR(FileReader(info, table.time() - infos.back().time, is_last,
                               table, reader)
                        .Read());
    if (use == ReadFor::kRecovery && info.snapshot != 0) {
      table.BeginChanges(info.snapshot);
    }
  }
  return absl::OkStatus();
}

}  // namespace hawser::ps
