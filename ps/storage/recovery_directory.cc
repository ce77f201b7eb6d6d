#include "ps/storage/recovery_directory.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"

namespace hawser::ps {
namespace {

constexpr char kLogSuffix[] = ".log";
constexpr char kRowsSuffix[] = ".rows";

// The parts of "TABLE.NUMBER" and one of the suffixes.
struct FileName {
  std::string table;
  int64_t number = 0;
  bool is_log = false;
};

// Returns false for other files, such as those that are being written.
bool Parse(const std::string& name, FileName& parsed) {
  std::string_view rest = name;
  if (rest.ends_with(kLogSuffix)) {
    parsed.is_log = true;
    rest.remove_suffix(sizeof(kLogSuffix) - 1);
  } else if (rest.ends_with(kRowsSuffix)) {
    parsed.is_log = false;
    rest.remove_suffix(sizeof(kRowsSuffix) - 1);
  } else {
    return false;
  }
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos ||
      !absl::SimpleAtoi(std::string(rest.substr(dot + 1)), &parsed.number)) {
    return false;
  }
  parsed.table =
      absl::StrReplaceAll(std::string(rest.substr(0, dot)), {{"+", "/"}});
  return true;
}

absl::Status Failed(const std::string& operation, const std::string& path,
                    const std::error_code& error) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", operation, " ", path, ": ", error.message()));
}

}  // namespace

absl::Status RecoveryDirectory::Open() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  return error ? Failed("create the directory", path_, error)
               : absl::OkStatus();
}

absl::StatusOr<std::map<std::string, RecoveryDirectory::Numbers>>
RecoveryDirectory::List() const {
  std::map<std::string, Numbers> tables;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    FileName name;
    if (!Parse(entry.path().filename().string(), name)) continue;
    Numbers& numbers = tables[name.table];
    (name.is_log ? numbers.logs : numbers.rows).insert(name.number);
  }
  if (error) return Failed("read the directory", path_, error);
  return tables;
}

std::string RecoveryDirectory::LogPath(const std::string& table,
                                       int64_t number) const {
  return absl::StrCat(path_, "/", absl::StrReplaceAll(table, {{"/", "+"}}), ".",
                      number, kLogSuffix);
}

std::string RecoveryDirectory::RowsPath(const std::string& table,
                                        int64_t number) const {
  return absl::StrCat(path_, "/", absl::StrReplaceAll(table, {{"/", "+"}}), ".",
                      number, kRowsSuffix);
}

absl::Status RecoveryDirectory::Keep(const std::string& table,
                                     int64_t first_log,
                                     const std::set<int64_t>& rows) const {
  ASSIGN_OR_RETURN(const auto tables, List());
  const auto found = tables.find(table);
  if (found == tables.end()) return absl::OkStatus();
  std::error_code error;
  for (int64_t old : found->second.logs) {
    if (old < first_log) std::filesystem::remove(LogPath(table, old), error);
  }
  for (int64_t old : found->second.rows) {
    if (!rows.contains(old)) {
      std::filesystem::remove(RowsPath(table, old), error);
    }
  }
  return error ? Failed("remove old files from", path_, error)
               : absl::OkStatus();
}

}  // namespace hawser::ps
