// Directories of a benchmark.

#ifndef HAWSER_BENCHMARKS_TEMPORARY_DIRECTORY_H_
#define HAWSER_BENCHMARKS_TEMPORARY_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace hawser::benchmarks {

// A directory that is removed with this object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char path[] = "/tmp/hawser_benchmarkXXXXXX";
    if (mkdtemp(path) != nullptr) path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  // Creates a directory inside, and returns its path.
  std::string Make(const std::string& name) const {
    const std::string path = absl::StrCat(path_, "/", name);
    std::filesystem::create_directory(path);
    return path;
  }

 private:
  std::string path_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_TEMPORARY_DIRECTORY_H_
