#include "ps/server/table_directories.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"
#include "fs/unique_fd.h"

namespace hawser::ps {
namespace {

namespace stdfs = std::filesystem;

constexpr char kRemoved[] = ".removed";

absl::Status Failed(const char* operation, const std::string& path,
                    const std::error_code& error) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", operation, " ", path, ": ", error.message()));
}

}  // namespace

absl::Status TableDirectories::Open() const {
  std::error_code error;
  stdfs::create_directories(path_, error);
  if (error) return Failed("create the directory", path_, error);
  for (const auto& entry : stdfs::directory_iterator(path_, error)) {
    if (!entry.path().filename().string().ends_with(kRemoved)) continue;
    std::error_code failed;
    stdfs::remove_all(entry.path(), failed);
    if (failed) return Failed("remove", entry.path().string(), failed);
  }
  return error ? Failed("read the directory", path_, error) : absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::set<int64_t>>>
TableDirectories::List() const {
  std::map<std::string, std::set<int64_t>> tables;
  std::error_code error;
  for (const auto& entry : stdfs::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    const size_t dot = name.rfind('.');
    int64_t version = 0;
    if (dot == std::string::npos ||
        !absl::SimpleAtoi(name.substr(dot + 1), &version)) {
      continue;
    }
    tables[absl::StrReplaceAll(name.substr(0, dot), {{"+", "/"}})].insert(
        version);
  }
  if (error) return Failed("read the directory", path_, error);
  return tables;
}

std::string TableDirectories::PathOf(const std::string& table,
                                     int64_t version) const {
  return absl::StrCat(path_, "/", absl::StrReplaceAll(table, {{"/", "+"}}), ".",
                      version);
}

absl::StatusOr<std::unique_ptr<RecoveryDirectory>> TableDirectories::Create(
    const std::string& table, int64_t version) const {
  RETURN_IF_ERROR(Remove(table, version));
  std::unique_ptr<RecoveryDirectory> directory = Find(table, version);
  RETURN_IF_ERROR(directory->Open());
  RETURN_IF_ERROR(Sync());
  return directory;
}

std::unique_ptr<RecoveryDirectory> TableDirectories::Find(
    const std::string& table, int64_t version) const {
  return std::make_unique<RecoveryDirectory>(PathOf(table, version));
}

absl::Status TableDirectories::Sync() const {
  const fs::UniqueFd directory(
      open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0 && fsync(directory.get()) == 0) {
    return absl::OkStatus();
  }
  return Failed("sync", path_, std::error_code(errno, std::system_category()));
}

absl::Status TableDirectories::Remove(const std::string& table,
                                      int64_t version) const {
  const std::string path = PathOf(table, version);
  const std::string removed = path + kRemoved;
  std::error_code error;
  stdfs::remove_all(removed, error);
  if (error) return Failed("remove", removed, error);
  stdfs::rename(path, removed, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (error) return Failed("remove", path, error);
  RETURN_IF_ERROR(Sync());
  // What is left after an error is removed when the server starts again.
  stdfs::remove_all(removed, error);
  return absl::OkStatus();
}

}  // namespace hawser::ps
