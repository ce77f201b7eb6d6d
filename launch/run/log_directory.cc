#include "launch/run/log_directory.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::launch {
namespace {

absl::Status CreateDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(
      error.value(), absl::StrCat("cannot create the log directory ", path));
}

}  // namespace

absl::StatusOr<LogDirectory> LogDirectory::Create(const std::string& log_dir,
                                                  const std::string& run_id) {
  std::string parent = log_dir;
  if (parent.empty()) {
    std::error_code error;
    parent = std::filesystem::temp_directory_path(error).string();
    if (error) parent = "/tmp";
  }
  RETURN_IF_ERROR(CreateDirectories(parent));
  std::string path = absl::StrCat(parent, "/", run_id, "_XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot create a log directory in ", parent));
  }
  return LogDirectory(std::move(path));
}

absl::StatusOr<LogDirectory::File> LogDirectory::Open(
    int attempt, int local_rank, const std::string& name) const {
  const std::string directory =
      absl::StrCat(path_, "/attempt_", attempt, "/", local_rank);
  RETURN_IF_ERROR(CreateDirectories(directory));
  File file;
  file.path = absl::StrCat(directory, "/", name, ".log");
  file.fd = fs::UniqueFd(
      open(file.path.c_str(),
           O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
  if (file.fd.valid()) return file;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", file.path));
}

}  // namespace hawser::launch
