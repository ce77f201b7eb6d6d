#include "ps/storage/snapshot_directory.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_file.h"

namespace hawser::ps {
namespace {

constexpr size_t kMaxNameLength = 200;
constexpr char kSuffix[] = ".rows";

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.';
}

std::string FileStem(const std::string& table) {
  return absl::StrReplaceAll(table, {{"/", "+"}});
}

struct TableFile {
  std::string path;
  TableFileInfo info;

  int64_t end() const { return info.shards.first + info.shards.count; }
};

// The files of `table` in `directory`, in the order of their shards.
absl::StatusOr<std::vector<TableFile>> FilesOf(const std::string& table,
                                               const std::string& directory) {
  std::vector<TableFile> files;
  std::error_code error;
  const std::string prefix = FileStem(table) + ".";
  for (const auto& entry :
       std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    ASSIGN_OR_RETURN(const TableFileInfo info,
                     ReadTableFileInfo(entry.path().string()));
    // "a" and "a.b" begin alike.
    if (info.spec.name != table) continue;
    files.push_back({entry.path().string(), info});
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("cannot read the snapshot ",
                                            directory, ": ", error.message()));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return a.info.shards.first < b.info.shards.first;
  });
  return files;
}

// Checks that `files` are of one snapshot and have all of `shards`.
absl::Status CheckComplete(const std::vector<TableFile>& files,
                           const std::string& table,
                           const std::string& directory, ShardRange shards) {
  int64_t covered = shards.first;
  for (const TableFile& file : files) {
    if (file.info.snapshot != files[0].info.snapshot ||
        file.info.spec != files[0].info.spec) {
      return absl::DataLossError(
          absl::StrCat(files[0].path, " and ", file.path,
                       " are of different snapshots: save each snapshot to a "
                       "directory of its own"));
    }
    if (file.info.shards.first <= covered) {
      covered = std::max(covered, file.end());
    }
  }
  if (covered >= shards.first + shards.count) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the snapshot ", directory,
                                          " does not have shard ", covered,
                                          " of table \"", table, "\""));
}

}  // namespace

absl::StatusOr<std::string> SnapshotDirectory::PathOf(
    const std::string& snapshot) const {
  if (path_.empty()) {
    return absl::FailedPreconditionError(
        "this server has no directory for snapshots: set "
        "ps::TableServiceOptions::snapshot_directory");
  }
  if (snapshot.empty() || snapshot.size() > kMaxNameLength ||
      snapshot[0] == '.' ||
      !std::all_of(snapshot.begin(), snapshot.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a snapshot has a name of 1 to ", kMaxNameLength,
        " letters, digits, '_', '-' and '.', not beginning with '.'"));
  }
  return absl::StrCat(path_, "/", snapshot);
}

absl::Status SnapshotDirectory::CheckNew(const SparseTable& table,
                                         const std::string& snapshot,
                                         uint64_t id) const {
  ASSIGN_OR_RETURN(const std::string directory, PathOf(snapshot));
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<TableFile> files,
                   FilesOf(table.spec().name, directory));
  const ShardRange shards = table.shards();
  for (const TableFile& file : files) {
    if (file.info.snapshot != id && file.end() > shards.first &&
        file.info.shards.first < shards.first + shards.count) {
      return absl::AlreadyExistsError(
          absl::StrCat("the snapshot exists: it has the file ", file.path,
                       "; use another name"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TableFileSize> SnapshotDirectory::Save(
    const SparseTable& table, const std::string& snapshot, uint64_t id,
    int64_t log, std::string& path) const {
  ASSIGN_OR_RETURN(const std::string directory, PathOf(snapshot));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot create the snapshot ", directory, ": ", error.message()));
  }
  const ShardRange shards = table.shards();
  path = absl::StrCat(directory, "/", FileStem(table.spec().name), ".",
                      shards.first, "-", shards.count, kSuffix);
  return WriteTableFile(table, id, log, path);
}

absl::StatusOr<std::unique_ptr<SparseTable>> SnapshotDirectory::Restore(
    const std::string& table, const std::string& snapshot, ServerPlace place,
    SparseTableOptions options) const {
  ASSIGN_OR_RETURN(const std::string directory, PathOf(snapshot));
  ASSIGN_OR_RETURN(const std::vector<TableFile> files,
                   FilesOf(table, directory));
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the snapshot ", directory, " does not have table \"", table, "\""));
  }
  ASSIGN_OR_RETURN(const ShardRange shards,
                   ShardsOf(place, files[0].info.spec.num_shards));
  RETURN_IF_ERROR(CheckComplete(files, table, directory, shards));
  options.shards = shards;
  for (const TableFile& file : files) {
    if (file.info.shards == shards) {
      options.num_partitions = static_cast<int>(file.info.num_partitions);
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SparseTable> restored,
                   SparseTable::Create(files[0].info.spec, options));
  for (const TableFile& file : files) {
    if (file.info.shards.first >= shards.first + shards.count ||
        file.end() <= shards.first) {
      continue;
    }
    RETURN_IF_ERROR(ReadTableFile(file.path, *restored));
  }
  return restored;
}

}  // namespace hawser::ps
