#include "fs/atomic_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/open_beneath.h"

namespace hawser::fs {
namespace {

absl::Status Error(const std::string& what) {
  return absl::ErrnoToStatus(errno, what);
}

absl::Status WriteAll(int fd, const std::string& content,
                      const std::string& path) {
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t count =
        write(fd, content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error("cannot write " + path);
    written += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

// An unpredictable name, so that no other process can create it first.
std::string RandomName(const std::string& name) {
  std::random_device random;
  return absl::StrCat(name, ".new.", absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace

absl::StatusOr<AtomicDirectory> AtomicDirectory::Create(
    const std::string& path) {
  // Removes a trailing slash, which would create the directory inside `path`.
  std::string own = std::filesystem::absolute(path).lexically_normal();
  while (own.size() > 1 && own.ends_with('/')) own.pop_back();
  const int parent = open(std::filesystem::path(own).parent_path().c_str(),
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0) return Error("cannot create " + path);
  AtomicDirectory made(std::move(own), parent);
  RETURN_IF_ERROR(made.Make());
  return made;
}

AtomicDirectory::AtomicDirectory(std::string path, int parent)
    : path_(std::move(path)),
      name_(std::filesystem::path(path_).filename()),
      parent_(parent) {}

absl::Status AtomicDirectory::Make() {
  std::string staged = RandomName(name_);
  if (mkdirat(parent_, staged.c_str(), 0700) != 0) {
    return Error("cannot create " + path_);
  }
  staged_ = std::move(staged);
  ASSIGN_OR_RETURN(own_, OpenBeneath(parent_, staged_, O_RDONLY | O_DIRECTORY));
  return absl::OkStatus();
}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : path_(other.path_),
      name_(other.name_),
      parent_(std::exchange(other.parent_, -1)),
      own_(std::exchange(other.own_, -1)),
      staged_(std::exchange(other.staged_, "")) {}

AtomicDirectory::~AtomicDirectory() {
  RemoveStaged();
  if (own_ >= 0) close(own_);
  if (parent_ >= 0) close(parent_);
}

void AtomicDirectory::RemoveStaged() {
  if (staged_.empty()) return;
  // By the descriptor, since the parent's path may have been replaced.
  std::error_code ignored;
  std::filesystem::remove_all(
      absl::StrCat("/proc/self/fd/", parent_, "/", staged_), ignored);
  staged_.clear();
}

absl::Status AtomicDirectory::Sync(int directory) const {
  return fsync(directory) == 0 ? absl::OkStatus()
                               : Error("cannot write " + path_);
}

absl::Status AtomicDirectory::Write(const std::string& name,
                                    const std::string& content, int mode) {
  const std::string path = absl::StrCat(path_, "/", name);
  ASSIGN_OR_RETURN(const int fd,
                   OpenBeneath(own_, name, O_WRONLY | O_CREAT | O_EXCL,
                               static_cast<mode_t>(mode)));
  const absl::Cleanup closer = [fd] { close(fd); };
  RETURN_IF_ERROR(WriteAll(fd, content, path));
  if (fsync(fd) != 0) return Error("cannot write " + path);
  return absl::OkStatus();
}

absl::Status AtomicDirectory::Publish() && {
  RETURN_IF_ERROR(Sync(own_));
  if (renameat(parent_, staged_.c_str(), parent_, name_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
      return absl::AlreadyExistsError(
          path_ + " already exists: choose another name or remove it");
    }
    return Error("cannot create " + path_);
  }
  staged_.clear();
  return Sync(parent_);
}

absl::Status AtomicDirectory::Replace() && {
  RETURN_IF_ERROR(Sync(own_));
  if (renameat2(parent_, staged_.c_str(), parent_, name_.c_str(),
                RENAME_EXCHANGE) != 0) {
    if (errno == ENOENT) return std::move(*this).Publish();
    return Error("cannot replace " + path_);
  }
  // The old directory now has the staged name.
  RemoveStaged();
  return Sync(parent_);
}

}  // namespace hawser::fs
