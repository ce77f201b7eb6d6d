#include "fs/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hawser::fs {
namespace {

// Below the kernel's limit on the bytes of one write.
constexpr size_t kMaxWriteBytes = size_t{1} << 30;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<AtomicFile> AtomicFile::Create(std::string path) {
  std::string temporary_path = absl::StrCat(path, ".tmp.XXXXXX");
  const int fd = mkostemp(temporary_path.data(), O_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot write ", path,
                                            ": cannot create a temporary file "
                                            "beside it"));
  }
  return AtomicFile(std::move(path), std::move(temporary_path), fd);
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path, int fd)
    : path_(std::move(path)),
      temporary_path_(std::move(temporary_path)),
      fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, "")),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

absl::Status AtomicFile::Failed(const char* operation) const {
  const int error = errno;
  const std::string message =
      absl::StrCat("cannot write ", path_, ": ", operation, " failed");
  if (error == EIO) {
    return absl::UnavailableError(
        absl::StrCat(message, ": ", std::strerror(error)));
  }
  return absl::ErrnoToStatus(error, message);
}

absl::Status AtomicFile::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        write(fd_, bytes.data(), std::min(bytes.size(), kMaxWriteBytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      return Failed("write");
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (fsync(fd_) != 0) return Failed("fsync");
  if (close(std::exchange(fd_, -1)) != 0) return Failed("close");
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return Failed("rename");
  }
  temporary_path_.clear();
  // Without this, the rename may be lost on a power failure.
  const int folder =
      open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return Failed("opening the directory");
  const int synced = fsync(folder);
  const int sync_errno = errno;
  close(folder);
  errno = sync_errno;
  // Some file systems cannot sync a directory; their renames do not need it.
  if (synced != 0 && errno != EINVAL) return Failed("fsync of the directory");
  return absl::OkStatus();
}

}  // namespace hawser::fs
