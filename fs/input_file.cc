#include "fs/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hawser::fs {
namespace {

// Below the kernel's limit on the bytes of one read.
constexpr size_t kMaxReadBytes = size_t{1} << 30;

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(std::string path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  InputFile file(std::move(path), fd, 0);
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", file.path_));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path_, " is not a regular file"));
  }
  file.bytes_ = static_cast<uint64_t>(status.st_size);
  return file;
}

InputFile::InputFile(std::string path, int fd, uint64_t bytes)
    : path_(std::move(path)), fd_(fd), bytes_(bytes) {}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status InputFile::ReadAt(uint64_t offset,
                               std::span<std::byte> dest) const {
  while (!dest.empty()) {
    const ssize_t got =
        pread(fd_, dest.data(), std::min(dest.size(), kMaxReadBytes),
              static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
    }
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, " ends at byte ", offset,
                                              ", ", dest.size(),
                                              " bytes too early"));
    }
    dest = dest.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace hawser::fs
