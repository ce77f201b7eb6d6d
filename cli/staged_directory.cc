#include "cli/staged_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::cli {
namespace {

absl::Status Error(const std::string& what) {
  return absl::ErrnoToStatus(errno, what);
}

absl::Status Sync(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Error("cannot open " + directory);
  const absl::Cleanup closer = [fd] { close(fd); };
  if (fsync(fd) != 0) return Error("cannot write " + directory);
  return absl::OkStatus();
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

void Remove(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

}  // namespace

absl::StatusOr<StagedDirectory> StagedDirectory::Create(
    const std::string& path) {
  // Without a slash at the end, which would have it made inside.
  std::string own = std::filesystem::absolute(path).lexically_normal();
  while (own.size() > 1 && own.ends_with('/')) own.pop_back();
  std::string staged = own + ".new.XXXXXX";
  if (mkdtemp(staged.data()) == nullptr) return Error("cannot make " + path);
  return StagedDirectory(std::move(own), std::move(staged));
}

StagedDirectory::StagedDirectory(std::string path, std::string staged)
    : path_(std::move(path)), staged_(std::move(staged)) {}

StagedDirectory::StagedDirectory(StagedDirectory&& other) noexcept
    : path_(other.path_), staged_(std::exchange(other.staged_, "")) {}

StagedDirectory::~StagedDirectory() {
  if (!staged_.empty()) Remove(staged_);
}

absl::Status StagedDirectory::Write(const std::string& name,
                                    const std::string& content, int mode) {
  const std::string path = absl::StrCat(staged_, "/", name);
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
           static_cast<mode_t>(mode));
  if (fd < 0) return Error("cannot make " + path);
  const absl::Cleanup closer = [fd] { close(fd); };
  RETURN_IF_ERROR(WriteAll(fd, content, path));
  if (fsync(fd) != 0) return Error("cannot write " + path);
  return absl::OkStatus();
}

absl::Status StagedDirectory::Publish() && {
  RETURN_IF_ERROR(Sync(staged_));
  if (rename(staged_.c_str(), path_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
      return absl::AlreadyExistsError(
          path_ + " is there already: choose another name, or remove it");
    }
    return Error("cannot make " + path_);
  }
  staged_.clear();
  return Sync(std::filesystem::path(path_).parent_path());
}

absl::Status StagedDirectory::Replace() && {
  RETURN_IF_ERROR(Sync(staged_));
  if (renameat2(AT_FDCWD, staged_.c_str(), AT_FDCWD, path_.c_str(),
                RENAME_EXCHANGE) != 0) {
    if (errno == ENOENT) return std::move(*this).Publish();
    return Error("cannot replace " + path_);
  }
  // The old one has the staged one's name now.
  Remove(std::exchange(staged_, ""));
  return Sync(std::filesystem::path(path_).parent_path());
}

}  // namespace hawser::cli
