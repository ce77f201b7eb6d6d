#include "fs/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace hawser::fs {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;

absl::StatusOr<std::string> ReadAll(int fd, const std::string& name) {
  std::string content;
  char part[4096];
  while (true) {
    const ssize_t count = read(fd, part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "cannot read " + name);
    if (count == 0) return content;
    content.append(part, static_cast<size_t>(count));
    if (content.size() > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is longer than ", kMaxBytes, " bytes"));
    }
  }
}

absl::Status CheckOwnersOnly(int fd, const std::string& name) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) {
    return absl::ErrnoToStatus(errno, "cannot stat " + name);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(name + " is not a regular file");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(
        name +
        " belongs to another user, who can read its secret: give it to this "
        "user with chown");
  }
  if ((info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        name, " can be read by users other than its owner: run chmod 600 ",
        name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Read(const std::string& path, bool owners_only) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot open " + path);
  const absl::Cleanup closer = [fd] { close(fd); };
  if (owners_only) {
    if (absl::Status s = CheckOwnersOnly(fd, path); !s.ok()) return s;
  }
  return ReadAll(fd, path);
}

}  // namespace

absl::StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  return Read(path, /*owners_only=*/true);
}

absl::StatusOr<std::string> ReadPublicFile(const std::string& path) {
  return Read(path, /*owners_only=*/false);
}

absl::StatusOr<std::string> ReadPrivateDescriptor(int fd) {
  const absl::Cleanup closer = [fd] { close(fd); };
  return ReadAll(fd, absl::StrCat("descriptor ", fd));
}

}  // namespace hawser::fs
