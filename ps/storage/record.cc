#include "ps/storage/record.h"

#include <zlib.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/input_file.h"

namespace hawser::ps {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they are in memory");

// Of the prefix, the bytes before the checksum.
constexpr size_t kCheckedPrefixBytes = 12;

uint32_t Checksum(const RecordPrefix& prefix,
                  std::span<const std::span<const std::byte>> body) {
  uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(prefix.data()),
                      kCheckedPrefixBytes);
  for (const std::span<const std::byte> part : body) {
    // A null pointer makes crc32_z begin anew.
    if (part.empty()) continue;
    sum =
        crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  return static_cast<uint32_t>(sum);
}

}  // namespace

RecordPrefix MakeRecordPrefix(
    RecordKind kind, std::span<const std::span<const std::byte>> body) {
  uint64_t size = 0;
  for (const std::span<const std::byte> part : body) size += part.size();
  RecordPrefix prefix;
  std::memcpy(prefix.data(), &kind, 4);
  std::memcpy(prefix.data() + 4, &size, 8);
  const uint32_t checksum = Checksum(prefix, body);
  std::memcpy(prefix.data() + kCheckedPrefixBytes, &checksum, 4);
  return prefix;
}

absl::StatusOr<RecordReader> RecordReader::Open(const std::string& path,
                                                std::string_view magic) {
  ASSIGN_OR_RETURN(fs::InputFile file, fs::InputFile::Open(path));
  RecordReader reader(std::move(file));
  std::array<std::byte, kMagicBytes> begin;
  if (!reader.file_.ReadAt(0, begin).ok() ||
      std::memcmp(begin.data(), magic.data(), kMagicBytes) != 0) {
    reader.torn_ = reader.file_.bytes() < kMagicBytes;
    return reader.Damaged(
        absl::StrCat("it does not begin with \"", std::string(magic), "\""));
  }
  reader.offset_ = kMagicBytes;
  return reader;
}

absl::Status RecordReader::Damaged(const std::string& damage) const {
  return absl::DataLossError(absl::StrCat(file_.path(), " is damaged at byte ",
                                          offset_, ": ", damage));
}

absl::StatusOr<RecordKind> RecordReader::Next() {
  const uint64_t left = file_.bytes() - offset_;
  torn_ = true;
  if (left < kRecordPrefixBytes) return Damaged("the file ends too early");
  RecordPrefix prefix;
  RETURN_IF_ERROR(file_.ReadAt(offset_, prefix));
  RecordKind kind{};
  uint64_t size = 0;
  uint32_t checksum = 0;
  std::memcpy(&kind, prefix.data(), 4);
  std::memcpy(&size, prefix.data() + 4, 8);
  std::memcpy(&checksum, prefix.data() + kCheckedPrefixBytes, 4);
  if (size > left - kRecordPrefixBytes) {
    return Damaged("the file ends too early");
  }
  torn_ = size == left - kRecordPrefixBytes;
  if (size > kMaxRecordBytes) {
    return Damaged(absl::StrCat("a record of ", size, " bytes"));
  }
  body_.resize(size);
  RETURN_IF_ERROR(file_.ReadAt(offset_ + kRecordPrefixBytes, body_));
  const std::span<const std::byte> parts[] = {body_};
  if (Checksum(prefix, parts) != checksum) {
    return Damaged("the checksum does not match");
  }
  torn_ = false;
  offset_ += kRecordPrefixBytes + size;
  return kind;
}

}  // namespace hawser::ps
