// Records of the files of tables.
//
// A file begins with 8 bytes that name its kind. Records follow, each with its
// kind (4 bytes), the length of its body (8 bytes), the CRC-32 of kind, length
// and body (4 bytes), and the body. Numbers are little-endian.

#ifndef HAWSER_PS_STORAGE_RECORD_H_
#define HAWSER_PS_STORAGE_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fs/input_file.h"

namespace hawser::ps {

enum class RecordKind : uint32_t {
  kHeader = 1,     // TableFileHeader of proto/table_files.proto.
  kPartition = 2,  // TablePartitionHeader.
  kRows = 3,       // Rows, as in PartitionCopy::rows.
  kEnd = 4,        // TableFileEnd.
  // Changes of rows: ps/storage/push_log.h.
  kPush = 5,
  kAssign = 6,
  kAssignMissing = 7,
  kClocks = 8,  // TableClocks.
  kClock = 9,   // ClockEvent.
  // Of an increment: keys that have lost their rows, 8 bytes each.
  kRemoved = 10,
};

inline constexpr size_t kMagicBytes = 8;
inline constexpr size_t kRecordPrefixBytes = 16;
// Larger bodies are damage, or are refused before they are written.
inline constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

using RecordPrefix = std::array<std::byte, kRecordPrefixBytes>;

// The bytes before a body that is given in parts.
RecordPrefix MakeRecordPrefix(RecordKind kind,
                              std::span<const std::span<const std::byte>> body);

// Reads the records of a file, and checks them. Not thread-safe.
class RecordReader {
 public:
  // kDataLoss: the file does not begin with `magic`, of kMagicBytes.
  static absl::StatusOr<RecordReader> Open(const std::string& path,
                                           std::string_view magic);

  // Reads the next record; its body is valid until the next call.
  // kDataLoss: names file, place and damage.
  absl::StatusOr<RecordKind> Next();
  std::span<const std::byte> body() const { return body_; }

  // Whether the file ends after the last record.
  bool at_end() const { return offset_ == file_.bytes(); }
  // After an error of Next: whether the damaged record is the last thing in the
  // file, as after the end of a process that was writing it.
  bool torn() const { return torn_; }
  // Where the last record that Next returned ends.
  uint64_t offset() const { return offset_; }

  absl::Status Damaged(const std::string& damage) const;

  // The body as a message.
  template <class M>
  absl::StatusOr<M> Parse() const {
    M message;
    if (!message.ParseFromArray(body_.data(), static_cast<int>(body_.size()))) {
      return Damaged(absl::StrCat("it is not a ", message.GetTypeName()));
    }
    return message;
  }

 private:
  explicit RecordReader(fs::InputFile file) : file_(std::move(file)) {}

  fs::InputFile file_;
  uint64_t offset_ = 0;
  bool torn_ = false;
  std::vector<std::byte> body_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RECORD_H_
