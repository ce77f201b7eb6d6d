#include "store/file/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::store::internal {
namespace {

constexpr std::string_view kMagic = "HWSTORE2";
constexpr size_t kHeaderBytes = 36;
constexpr size_t kPrefixBytes = 8;
constexpr size_t kKeyOffset = 5;
constexpr size_t kLifetimeBytes = 8;
// More than any key and value that a store accepts.
constexpr uint32_t kMaxBodyBytes = uint32_t{1} << 30;

constexpr int64_t kDataLockOffset = int64_t{1} << 61;
constexpr int64_t kMemberLockOffset = kDataLockOffset + 1;

void PutUint32(uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

void PutUint64(uint64_t value, std::string& out) {
  PutUint32(static_cast<uint32_t>(value), out);
  PutUint32(static_cast<uint32_t>(value >> 32), out);
}

uint32_t GetUint32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

uint64_t GetUint64(std::string_view bytes) {
  return GetUint32(bytes) | uint64_t{GetUint32(bytes.substr(4))} << 32;
}

uint32_t Checksum(std::string_view body) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
}

std::string Encoded(const Record& record) {
  std::string body;
  body.reserve(FileLog::BytesOf(record.kind, record.key, record.value));
  body.push_back(static_cast<char>(record.kind));
  PutUint32(static_cast<uint32_t>(record.key.size()), body);
  body.append(record.key);
  if (record.kind == RecordKind::kLease) PutUint64(record.lifetime_ms, body);
  body.append(record.value);
  std::string bytes;
  bytes.reserve(kPrefixBytes + body.size());
  PutUint32(Checksum(body), bytes);
  PutUint32(static_cast<uint32_t>(body.size()), bytes);
  return bytes.append(body);
}

std::string EncodedHeader(uint64_t generation, uint64_t begin, uint64_t end) {
  std::string numbers;
  PutUint64(generation, numbers);
  PutUint64(begin, numbers);
  PutUint64(end, numbers);
  std::string bytes(kMagic);
  bytes.append(numbers);
  PutUint32(Checksum(numbers), bytes);
  return bytes;
}

// False if the body is damaged.
bool Decode(std::string_view body, uint32_t checksum, Record& record) {
  if (body.size() < kKeyOffset || Checksum(body) != checksum) return false;
  const auto kind = static_cast<uint8_t>(body[0]);
  const uint32_t key_bytes = GetUint32(body.substr(1));
  if (kind < 1 || kind > 6 || key_bytes > body.size() - kKeyOffset) {
    return false;
  }
  record.kind = static_cast<RecordKind>(kind);
  record.key = body.substr(kKeyOffset, key_bytes);
  body.remove_prefix(kKeyOffset + key_bytes);
  if (record.kind == RecordKind::kLease) {
    if (body.size() < kLifetimeBytes) return false;
    record.lifetime_ms = GetUint64(body);
    body.remove_prefix(kLifetimeBytes);
  }
  record.value = body;
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLog>> FileLog::Open(std::string path) {
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  std::unique_ptr<FileLog> log(new FileLog(std::move(path), fd));
  if (fd < 0) return log->SystemError("cannot open");
  struct stat file;
  if (fstat(fd, &file) != 0) return log->SystemError("cannot stat");
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(log->path_, " is not a regular file"));
  }
  log->device_ = file.st_dev;
  log->number_ = file.st_ino;
  return log;
}

FileLog::~FileLog() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<bool> FileLog::TryLockData(Lock lock) {
  return TryLock(kDataLockOffset, lock == Lock::kShared ? F_RDLCK : F_WRLCK);
}

void FileLog::UnlockData() { (void)TryLock(kDataLockOffset, F_UNLCK); }

absl::StatusOr<bool> FileLog::HasOtherMembers() {
  ASSIGN_OR_RETURN(const bool alone, TryLock(kMemberLockOffset, F_WRLCK));
  if (alone) (void)TryLock(kMemberLockOffset, F_UNLCK);
  return !alone;
}

absl::Status FileLog::HoldMemberLock() {
  ASSIGN_OR_RETURN(const bool locked, TryLock(kMemberLockOffset, F_RDLCK));
  if (locked) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(path_, ": another process locks the whole file"));
}

bool FileLog::IsLinked() const {
  struct stat there;
  return stat(path_.c_str(), &there) == 0 && there.st_dev == device_ &&
         there.st_ino == number_;
}

void FileLog::Unlink() { unlink(path_.c_str()); }

bool FileLog::HasMore() const {
  // Fast path: usually there is no change.
  char bytes_there[kHeaderBytes];
  const ssize_t read = pread(fd_, bytes_there, kHeaderBytes, 0);
  if (read > 0 &&
      header_bytes_ ==
          std::string_view(bytes_there, static_cast<size_t>(read))) {
    const absl::StatusOr<uint64_t> file_bytes = FileBytes();
    return !file_bytes.ok() ||
           (header_.end != 0 ? header_.end : *file_bytes) != at_.offset;
  }
  const absl::StatusOr<std::optional<Header>> header = ReadHeader();
  const absl::StatusOr<uint64_t> bytes = FileBytes();
  // A header being written may look damaged.
  if (!header.ok() || !bytes.ok() || header->has_value()) return true;
  return at_.generation != 0 || *bytes != 0;
}

absl::StatusOr<FileLog::Batch> FileLog::ReadMore() {
  Batch batch;
  ASSIGN_OR_RETURN(const std::optional<Header> header, ReadHeader());
  ASSIGN_OR_RETURN(const uint64_t file_bytes, FileBytes());
  if (!header.has_value()) {
    batch.from_beginning = at_.generation != 0;
    at_ = {};
    header_ = {};
    header_bytes_.clear();
    has_left_over_ = file_bytes != 0;
    return batch;
  }
  SetHeader(*header);
  if (header->generation != at_.generation) {
    batch.from_beginning = true;
    at_ = {.generation = header->generation, .offset = header->begin};
  }
  const uint64_t end =
      header->end != 0 ? std::min(file_bytes, header->end) : file_bytes;
  has_left_over_ = file_bytes > at_.offset;
  if (end <= at_.offset) return batch;
  std::string bytes(end - at_.offset, '\0');
  ASSIGN_OR_RETURN(const size_t read,
                   ReadAt(at_.offset, bytes.data(), bytes.size()));
  bytes.resize(read);
  std::string_view left = bytes;
  while (left.size() >= kPrefixBytes) {
    const uint32_t body_bytes = GetUint32(left.substr(4));
    if (body_bytes > kMaxBodyBytes) return DamageError(at_.offset);
    if (left.size() - kPrefixBytes < body_bytes) break;
    Record record;
    if (!Decode(left.substr(kPrefixBytes, body_bytes), GetUint32(left),
                record)) {
      return DamageError(at_.offset);
    }
    batch.records.push_back(std::move(record));
    left.remove_prefix(kPrefixBytes + body_bytes);
    at_.offset += kPrefixBytes + body_bytes;
  }
  has_left_over_ = file_bytes > at_.offset;
  return batch;
}

absl::Status FileLog::Append(const Record& record) {
  RETURN_IF_ERROR(CutLeftOver());
  std::string bytes = Encoded(record);
  Header header = header_;
  if (header.generation == 0) {
    header = {.generation = 1, .begin = kHeaderBytes};
    bytes.insert(0, EncodedHeader(header.generation, header.begin, header.end));
  }
  RETURN_IF_ERROR(WriteAt(at_.offset, bytes));
  SetHeader(header);
  at_ = {.generation = header.generation, .offset = at_.offset + bytes.size()};
  return absl::OkStatus();
}

absl::Status FileLog::Compact(const std::vector<Record>& records) {
  std::string bytes;
  for (const Record& record : records) bytes.append(Encoded(record));
  if (bytes.size() > CompactedBytesLimit()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", bytes.size(),
                     " bytes do not fit before byte ", at_.offset));
  }
  RETURN_IF_ERROR(CutLeftOver());
  const uint64_t old_end = at_.offset;
  RETURN_IF_ERROR(WriteAt(old_end, bytes));
  Header header = {.generation = at_.generation + 1, .begin = old_end};
  RETURN_IF_ERROR(WriteHeader(header));
  // Readers of the old generation read them as well.
  at_ = {.generation = header.generation, .offset = old_end + bytes.size()};

  RETURN_IF_ERROR(WriteAt(kHeaderBytes, bytes));
  header = {.generation = at_.generation + 1,
            .begin = kHeaderBytes,
            .end = kHeaderBytes + bytes.size()};
  RETURN_IF_ERROR(WriteHeader(header));
  at_ = {.generation = header.generation, .offset = header.end};
  has_left_over_ = true;
  return CutLeftOver();
}

uint64_t FileLog::CompactedBytesLimit() const {
  return at_.offset < kHeaderBytes ? 0 : at_.offset - kHeaderBytes;
}

absl::Status FileLog::Clear() {
  RETURN_IF_ERROR(Truncate(0));
  at_ = {};
  header_ = {};
  header_bytes_.clear();
  has_left_over_ = false;
  return absl::OkStatus();
}

uint64_t FileLog::BytesOf(RecordKind kind, std::string_view key,
                          std::string_view value) {
  return kPrefixBytes + kKeyOffset + key.size() + value.size() +
         (kind == RecordKind::kLease ? kLifetimeBytes : 0);
}

absl::Status FileLog::CutLeftOver() {
  if (has_left_over_) RETURN_IF_ERROR(Truncate(at_.offset));
  has_left_over_ = false;
  if (header_.end == 0) return absl::OkStatus();
  Header header = header_;
  header.end = 0;
  return WriteHeader(header);
}

absl::StatusOr<std::optional<FileLog::Header>> FileLog::ReadHeader() const {
  char bytes[kHeaderBytes];
  ASSIGN_OR_RETURN(const size_t read, ReadAt(0, bytes, kHeaderBytes));
  const std::string_view text(bytes, read);
  if (text.substr(0, kMagic.size()) != kMagic.substr(0, text.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " is not the file of a store"));
  }
  if (text.size() < kHeaderBytes) return std::nullopt;
  const std::string_view numbers = text.substr(kMagic.size(), 24);
  const Header header = {.generation = GetUint64(numbers),
                         .begin = GetUint64(numbers.substr(8)),
                         .end = GetUint64(numbers.substr(16))};
  if (Checksum(numbers) != GetUint32(text.substr(kMagic.size() + 24)) ||
      header.generation == 0 || header.begin < kHeaderBytes) {
    return DamageError(0);
  }
  return header;
}

absl::Status FileLog::WriteHeader(const Header& header) {
  RETURN_IF_ERROR(
      WriteAt(0, EncodedHeader(header.generation, header.begin, header.end)));
  SetHeader(header);
  return absl::OkStatus();
}

void FileLog::SetHeader(const Header& header) {
  header_ = header;
  header_bytes_ = EncodedHeader(header.generation, header.begin, header.end);
}

absl::Status FileLog::WriteAt(uint64_t offset, std::string_view bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count =
        pwrite(fd_, bytes.data() + written, bytes.size() - written,
               static_cast<off_t>(offset + written));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const absl::Status error = SystemError("cannot write");
      // Best effort: readers ignore bytes that are not a record.
      has_left_over_ = true;
      if (offset >= at_.offset) CutLeftOver().IgnoreError();
      return error;
    }
    written += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status FileLog::Truncate(uint64_t bytes) {
  if (ftruncate(fd_, static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
  return SystemError("cannot truncate");
}

absl::Status FileLog::SystemError(const char* what) const {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path_));
}

absl::Status FileLog::DamageError(uint64_t offset) const {
  return absl::DataLossError(
      absl::StrCat(path_, " is damaged at byte ", offset,
                   "; stop the job and delete the file"));
}

absl::StatusOr<bool> FileLog::TryLock(int64_t offset, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  if (fcntl(fd_, F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return SystemError("cannot lock");
}

absl::StatusOr<uint64_t> FileLog::FileBytes() const {
  struct stat file;
  if (fstat(fd_, &file) != 0) return SystemError("cannot stat");
  return static_cast<uint64_t>(file.st_size);
}

absl::StatusOr<size_t> FileLog::ReadAt(uint64_t offset, char* to,
                                       size_t max_bytes) const {
  size_t read = 0;
  while (read < max_bytes) {
    const ssize_t count = pread(fd_, to + read, max_bytes - read,
                                static_cast<off_t>(offset + read));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("cannot read");
    if (count == 0) break;
    read += static_cast<size_t>(count);
  }
  return read;
}

}  // namespace hawser::store::internal
