#include "fs/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hawser::fs {
namespace {

absl::Status Failed(const std::string& path) {
  // The path leaves the directory, passes a link, or passes a component that is
  // not a directory; a link counts as such if O_DIRECTORY is set.
  if (errno == EXDEV || errno == ELOOP) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path,
        "' leads out of its directory or passes through a symbolic link"));
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
}

}  // namespace

absl::StatusOr<int> OpenBeneath(int directory, const std::string& path,
                                int flags, mode_t mode) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  while (true) {
    const long fd =
        syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how));
    if (fd >= 0) return static_cast<int>(fd);
    // A concurrent rename interfered.
    if (errno == EAGAIN || errno == EINTR) continue;
    // The kernel is older than 5.6, or the container forbids the call.
    if (errno == ENOSYS || errno == EPERM) {
      return OpenBeneathByComponents(directory, path, flags, mode);
    }
    return Failed(path);
  }
}

absl::StatusOr<int> OpenBeneathByComponents(int directory,
                                            const std::string& path, int flags,
                                            mode_t mode) {
  if (absl::StartsWith(path, "/")) {
    errno = EXDEV;
    return Failed(path);
  }
  const std::vector<std::string> names =
      absl::StrSplit(path, '/', absl::SkipEmpty());
  int at = directory;
  const absl::Cleanup closer = [&] {
    if (at != directory) close(at);
  };
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "..") {
      errno = EXDEV;
      return Failed(path);
    }
    const bool last = i + 1 == names.size();
    const int step = last ? flags : O_PATH | O_DIRECTORY;
    const int fd =
        openat(at, names[i].c_str(), step | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) {
      // The component may be a link to a directory.
      if (errno == ENOTDIR && (step & O_DIRECTORY) != 0) errno = ELOOP;
      return Failed(path);
    }
    if (last) return fd;
    if (at != directory) close(at);
    at = fd;
  }
  errno = ENOENT;
  return Failed(path);
}

}  // namespace hawser::fs
