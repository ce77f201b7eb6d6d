#include "ps/storage/table_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
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
#include "fs/input_file.h"
#include "proto/ps.pb.h"
#include "ps/storage/push_window.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they are in memory");

constexpr char kMagic[] = {'H', 'W', 'S', 'R', 'T', 'B', 'L', '1'};
constexpr size_t kPrefixBytes = 16;
constexpr size_t kBlockBytes = size_t{4} << 20;
// Larger bodies are damage: a block has at least one row.
constexpr uint64_t kMaxBodyBytes = uint64_t{64} << 20;

enum class Kind : uint32_t { kHeader = 1, kPartition = 2, kRows = 3, kEnd = 4 };

using Prefix = std::array<std::byte, kPrefixBytes>;

uint32_t Checksum(const Prefix& prefix, std::span<const std::byte> body) {
  const auto* begin = reinterpret_cast<const Bytef*>(prefix.data());
  const uLong sum = crc32_z(0, begin, 12);
  return static_cast<uint32_t>(
      crc32_z(sum, reinterpret_cast<const Bytef*>(body.data()), body.size()));
}

// Writes records, and counts their bytes.
class Writer {
 public:
  explicit Writer(fs::AtomicFile& file) : file_(file) {}

  absl::Status Begin() {
    return Append(std::as_bytes(std::span(kMagic, sizeof(kMagic))));
  }
  absl::Status Record(Kind kind, std::span<const std::byte> body) {
    Prefix prefix;
    const uint64_t size = body.size();
    std::memcpy(prefix.data(), &kind, 4);
    std::memcpy(prefix.data() + 4, &size, 8);
    const uint32_t checksum = Checksum(prefix, body);
    std::memcpy(prefix.data() + 12, &checksum, 4);
    RETURN_IF_ERROR(Append(prefix));
    return Append(body);
  }
  template <class M>
  absl::Status Message(Kind kind, const M& message) {
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

// Reads records, and checks them.
class Reader {
 public:
  static absl::StatusOr<Reader> Open(const std::string& path) {
    ASSIGN_OR_RETURN(fs::InputFile file, fs::InputFile::Open(path));
    Reader reader(std::move(file));
    std::array<std::byte, sizeof(kMagic)> magic;
    if (!reader.file_.ReadAt(0, magic).ok() ||
        std::memcmp(magic.data(), kMagic, sizeof(kMagic)) != 0) {
      return reader.Damaged("it is not a file of rows of a table");
    }
    reader.offset_ = sizeof(kMagic);
    return reader;
  }

  absl::Status Damaged(const std::string& damage) const {
    return absl::DataLossError(absl::StrCat(
        file_.path(), " is damaged at byte ", offset_, ": ", damage));
  }

  // Reads the next record; the body is valid until the next call.
  absl::StatusOr<Kind> Next() {
    Prefix prefix;
    if (file_.bytes() - offset_ < kPrefixBytes) {
      return Damaged("the file ends too early");
    }
    RETURN_IF_ERROR(file_.ReadAt(offset_, prefix));
    Kind kind{};
    uint64_t size = 0;
    uint32_t checksum = 0;
    std::memcpy(&kind, prefix.data(), 4);
    std::memcpy(&size, prefix.data() + 4, 8);
    std::memcpy(&checksum, prefix.data() + 12, 4);
    if (size > kMaxBodyBytes) {
      return Damaged(absl::StrCat("a record of ", size, " bytes"));
    }
    if (size > file_.bytes() - offset_ - kPrefixBytes) {
      return Damaged("the file ends too early");
    }
    body_.resize(size);
    RETURN_IF_ERROR(file_.ReadAt(offset_ + kPrefixBytes, body_));
    if (Checksum(prefix, body_) != checksum) {
      return Damaged("the checksum does not match");
    }
    offset_ += kPrefixBytes + size;
    return kind;
  }

  std::span<const std::byte> body() const { return body_; }
  bool at_end() const { return offset_ == file_.bytes(); }

  template <class M>
  absl::StatusOr<M> Parse() const {
    M message;
    if (!message.ParseFromArray(body_.data(), static_cast<int>(body_.size()))) {
      return Damaged(absl::StrCat("it is not a ", message.GetTypeName()));
    }
    return message;
  }

 private:
  explicit Reader(fs::InputFile file) : file_(std::move(file)) {}

  fs::InputFile file_;
  uint64_t offset_ = 0;
  std::vector<std::byte> body_;
};

absl::StatusOr<TableFileInfo> ReadInfo(Reader& reader) {
  ASSIGN_OR_RETURN(const Kind kind, reader.Next());
  if (kind != Kind::kHeader) return reader.Damaged("the header is missing");
  ASSIGN_OR_RETURN(const auto header, reader.Parse<v1::TableFileHeader>());
  const absl::StatusOr<TableSpec> spec = FromProto(header.table());
  if (!spec.ok()) {
    return reader.Damaged(std::string(spec.status().message()));
  }
  return TableFileInfo{header.snapshot(), *spec, FromProto(header.shards()),
                       header.num_partitions()};
}

// Adds the pushes of partition `index` to `table`.
absl::Status ImportPushes(const Reader& reader,
                          const v1::TablePartitionHeader& partition,
                          size_t index, SparseTable& table) {
  for (const auto& client : partition.clients()) {
    const std::optional<PushWindow> pushes =
        PushWindow::FromBits(client.highest(), client.applied());
    if (!pushes.has_value()) {
      return reader.Damaged("the pushes of a client have a wrong size");
    }
    table.partition(index).ImportPushes(rpc::Incarnation{client.incarnation()},
                                        *pushes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableFileSize> WriteTableFile(const SparseTable& table,
                                             uint64_t snapshot,
                                             const std::string& path) {
  ASSIGN_OR_RETURN(fs::AtomicFile file, fs::AtomicFile::Create(path));
  Writer writer(file);
  RETURN_IF_ERROR(writer.Begin());
  v1::TableFileHeader header;
  header.set_snapshot(snapshot);
  *header.mutable_table() = ToProto(table.spec());
  *header.mutable_shards() = ToProto(table.shards());
  header.set_num_partitions(static_cast<int64_t>(table.num_partitions()));
  RETURN_IF_ERROR(writer.Message(Kind::kHeader, header));
  TableFileSize size;
  std::vector<std::byte> rows;
  for (size_t p = 0; p < table.num_partitions(); ++p) {
    const TablePartition& partition = table.partition(p);
    const auto pushes = partition.Export(rows);
    v1::TablePartitionHeader partition_header;
    const size_t row_bytes = partition.exported_row_bytes();
    partition_header.set_num_rows(
        static_cast<int64_t>(rows.size() / row_bytes));
    for (const auto& [incarnation, window] : pushes) {
      auto& client = *partition_header.add_clients();
      client.set_incarnation(rpc::ToNumber(incarnation));
      client.set_highest(window.highest());
      client.set_applied(window.Bits());
    }
    size.rows += partition_header.num_rows();
    RETURN_IF_ERROR(writer.Message(Kind::kPartition, partition_header));
    const size_t block =
        std::max(kBlockBytes / row_bytes, size_t{1}) * row_bytes;
    for (size_t begin = 0; begin < rows.size(); begin += block) {
      RETURN_IF_ERROR(writer.Record(
          Kind::kRows, std::span(rows).subspan(
                           begin, std::min(block, rows.size() - begin))));
    }
  }
  v1::TableFileEnd end;
  end.set_num_rows(size.rows);
  RETURN_IF_ERROR(writer.Message(Kind::kEnd, end));
  RETURN_IF_ERROR(file.Commit());
  size.bytes = writer.bytes();
  return size;
}

absl::StatusOr<TableFileInfo> ReadTableFileInfo(const std::string& path) {
  ASSIGN_OR_RETURN(Reader reader, Reader::Open(path));
  return ReadInfo(reader);
}

absl::Status ReadTableFile(const std::string& path, SparseTable& table) {
  ASSIGN_OR_RETURN(Reader reader, Reader::Open(path));
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
  size_t partition = 0;
  int64_t rows = 0;
  while (true) {
    ASSIGN_OR_RETURN(const Kind kind, reader.Next());
    if (kind == Kind::kPartition) {
      ASSIGN_OR_RETURN(const auto header,
                       reader.Parse<v1::TablePartitionHeader>());
      if (same_partitions && partition < table.num_partitions()) {
        RETURN_IF_ERROR(ImportPushes(reader, header, partition, table));
      }
      ++partition;
    } else if (kind == Kind::kRows) {
      if (reader.body().size() % row_bytes != 0) {
        return reader.Damaged("a block does not have whole rows");
      }
      rows += static_cast<int64_t>(reader.body().size() / row_bytes);
      RETURN_IF_ERROR(table.Import(reader.body()));
    } else if (kind == Kind::kEnd) {
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
