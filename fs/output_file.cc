#include "fs/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::fs {

OutputFile::OutputFile(std::string flag, std::string path, std::string content)
    : flag_(std::move(flag)),
      path_(std::move(path)),
      content_(std::move(content)) {}

std::string OutputFile::Prefix() const {
  return absl::StrCat("--", flag_, "=", path_, ": ");
}

absl::Status OutputFile::Check() const {
  if (path_.empty()) return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Prefix(), "this is a directory; name a file"));
  }
  std::string temporary = absl::StrCat(path_, ".XXXXXX");
  const int file = mkstemp(temporary.data());
  if (file < 0) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrCat(Prefix(), "cannot create a file in ",
                     std::filesystem::absolute(path_).parent_path().string()));
  }
  close(file);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

absl::Status OutputFile::Write(
    absl::FunctionRef<absl::Status(const std::string& path)> write) const {
  if (path_.empty()) return absl::OkStatus();
  absl::Status status = write(path_);
  if (status.ok()) return status;
  const std::string failure =
      absl::StrCat(Prefix(), std::string(status.message()));
  std::error_code no_directory;
  std::string directory =
      std::filesystem::temp_directory_path(no_directory) / "hawser.XXXXXX";
  if (no_directory || mkdtemp(directory.data()) == nullptr) {
    return absl::Status(status.code(),
                        absl::StrCat(failure, "; ", content_,
                                     " is lost, because a temporary directory "
                                     "cannot be created either"));
  }
  const std::string other = absl::StrCat(
      directory, "/", std::filesystem::path(path_).filename().string());
  const absl::Status second = write(other);
  return absl::Status(
      status.code(),
      second.ok()
          ? absl::StrCat(failure, "; ", content_, " is in ", other, " instead")
          : absl::StrCat(
                failure, "; ", content_, " is lost, because ", other,
                " cannot be written either: ", std::string(second.message())));
}

}  // namespace hawser::fs
