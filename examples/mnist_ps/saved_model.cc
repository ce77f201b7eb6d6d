#include "examples/mnist_ps/saved_model.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "examples/mnist_ps/model.h"

namespace hawser::examples::mnist_ps {

absl::Status CheckSavePath(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--save=", path, ": this is a directory; name a file"));
  }
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const int file = mkstemp(temporary.data());
  if (file < 0) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrCat("--save=", path, ": cannot create a file in ",
                     std::filesystem::absolute(path).parent_path().string()));
  }
  close(file);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

absl::Status SaveModel(const std::string& path,
                       std::span<const Tensor> parameters) {
  if (path.empty()) return absl::OkStatus();
  const absl::Status status = SaveParameters(path, parameters);
  if (status.ok()) return status;
  const std::string failure =
      absl::StrCat("--save=", path, ": ", status.message());
  std::error_code no_directory;
  std::string directory =
      std::filesystem::temp_directory_path(no_directory) / "mnist_ps.XXXXXX";
  if (no_directory || mkdtemp(directory.data()) == nullptr) {
    return absl::Status(status.code(),
                        absl::StrCat(failure,
                                     "; the model is lost, because a temporary "
                                     "directory cannot be created either"));
  }
  const std::string other = directory + "/model.safetensors";
  const absl::Status second = SaveParameters(other, parameters);
  return absl::Status(
      status.code(),
      second.ok()
          ? absl::StrCat(failure, "; the model is in ", other, " instead")
          : absl::StrCat(failure, "; the model is lost, because ", other,
                         " cannot be written either: ", second.message()));
}

}  // namespace hawser::examples::mnist_ps
