#include "store/internal/file_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::store::internal {
namespace {

constexpr std::string_view kMagic = "HWSTORE1";
constexpr size_t kPrefixBytes = 8;
constexpr size_t kKeyOffset = 5;
// Above any key and value that a store accepts.
constexpr uint32_t kMaxBodyBytes = uint32_t{1} << 30;

constexpr int64_t kDataLockOffset = int64_t{1} << 61;
constexpr int64_t kMemberLockOffset = kDataLockOffset + 1;

void PutUint32(uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

uint32_t GetUint32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

uint32_t Checksum(std::string_view body) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
}

std::string Encoded(const Record& record) {
  std::string body;
  body.reserve(kKeyOffset + record.key.size() + record.value.size());
  body.push_back(static_cast<char>(record.kind));
  PutUint32(static_cast<uint32_t>(record.key.size()), body);
  body.append(record.key).append(record.value);
  std::string bytes;
  bytes.reserve(kPrefixBytes + body.size());
  PutUint32(Checksum(body), bytes);
  PutUint32(static_cast<uint32_t>(body.size()), bytes);
  return bytes.append(body);
}

// False if the body is damaged.
bool Decode(std::string_view body, uint32_t checksum, Record& record) {
  if (body.size() < kKeyOffset || Checksum(body) != checksum) return false;
  const auto kind = static_cast<uint8_t>(body[0]);
  const uint32_t key_bytes = GetUint32(body.substr(1));
  if (kind < 1 || kind > 4 || key_bytes > body.size() - kKeyOffset) {
    return false;
  }
  record.kind = static_cast<RecordKind>(kind);
  record.key = body.substr(kKeyOffset, key_bytes);
  record.value = body.substr(kKeyOffset + key_bytes);
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLog>> FileLog::Open(std::string path) {
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  std::unique_ptr<FileLog> log(new FileLog(std::move(path), fd));
  if (fd < 0) return log->SystemError("cannot open");
  struct stat file;
  if (fstat(fd, &file) != 0) return log->SystemError("cannot look at");
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(log->path_, " is not a regular file"));
  }
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
  struct stat ours, theirs;
  return fstat(fd_, &ours) == 0 && stat(path_.c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

void FileLog::Unlink() { unlink(path_.c_str()); }

bool FileLog::HasMore() const {
  const absl::StatusOr<uint64_t> bytes = FileBytes();
  return !bytes.ok() || *bytes != end_;
}

absl::StatusOr<std::vector<Record>> FileLog::ReadMore() {
  std::vector<Record> records;
  ASSIGN_OR_RETURN(const std::string bytes, ReadFrom(end_));
  std::string_view left = bytes;
  if (end_ == 0) {
    if (left.substr(0, kMagic.size()) != kMagic.substr(0, left.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " is not a store's file"));
    }
    if (left.size() < kMagic.size()) return records;
    left.remove_prefix(kMagic.size());
    end_ = kMagic.size();
  }
  while (left.size() >= kPrefixBytes) {
    const uint32_t body_bytes = GetUint32(left.substr(4));
    if (body_bytes > kMaxBodyBytes) return DamageError(end_);
    if (left.size() - kPrefixBytes < body_bytes) break;
    Record record;
    if (!Decode(left.substr(kPrefixBytes, body_bytes), GetUint32(left),
                record)) {
      return DamageError(end_);
    }
    records.push_back(std::move(record));
    left.remove_prefix(kPrefixBytes + body_bytes);
    end_ += kPrefixBytes + body_bytes;
  }
  return records;
}

absl::Status FileLog::Append(const Record& record) {
  std::string bytes = Encoded(record);
  if (end_ == 0) bytes.insert(0, kMagic);
  // What an interrupted writer left must not follow our record.
  ASSIGN_OR_RETURN(const uint64_t file_bytes, FileBytes());
  if (file_bytes > end_ && ftruncate(fd_, static_cast<off_t>(end_)) != 0) {
    return SystemError("cannot truncate");
  }
  return Write(bytes);
}

absl::Status FileLog::Clear() {
  if (ftruncate(fd_, 0) != 0) return SystemError("cannot truncate");
  end_ = 0;
  return absl::OkStatus();
}

absl::Status FileLog::Write(const std::string& bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count =
        pwrite(fd_, bytes.data() + written, bytes.size() - written,
               static_cast<off_t>(end_ + written));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const absl::Status error = SystemError("cannot write");
      // Best effort: a cut record is ignored all the same.
      if (ftruncate(fd_, static_cast<off_t>(end_)) != 0) return error;
      return error;
    }
    written += static_cast<size_t>(count);
  }
  end_ += bytes.size();
  return absl::OkStatus();
}

absl::Status FileLog::SystemError(const char* what) const {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path_));
}

absl::Status FileLog::DamageError(uint64_t offset) const {
  return absl::DataLossError(absl::StrCat(path_, " is damaged at byte ", offset,
                                          "; end the job and delete the file"));
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
  if (fstat(fd_, &file) != 0) return SystemError("cannot look at");
  return static_cast<uint64_t>(file.st_size);
}

absl::StatusOr<std::string> FileLog::ReadFrom(uint64_t offset) const {
  ASSIGN_OR_RETURN(const uint64_t file_bytes, FileBytes());
  std::string bytes;
  if (file_bytes <= offset) return bytes;
  bytes.resize(file_bytes - offset);
  size_t read = 0;
  while (read < bytes.size()) {
    const ssize_t count = pread(fd_, bytes.data() + read, bytes.size() - read,
                                static_cast<off_t>(offset + read));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("cannot read");
    if (count == 0) break;
    read += static_cast<size_t>(count);
  }
  bytes.resize(read);
  return bytes;
}

}  // namespace hawser::store::internal
