#include "ps/storage/snapshot/snapshot_directory.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
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
#include "ps/storage/memory/row_changes.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"

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

// Whether the files of two servers are of the same snapshots.
absl::Status CheckSameSnapshots(const std::vector<std::string>& paths,
                                const std::vector<TableFileInfo>& infos,
                                const std::vector<std::string>& other_paths,
                                const std::vector<TableFileInfo>& others) {
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos.size() == others.size() &&
        infos[i].snapshot == others[i].snapshot) {
      continue;
    }
    const size_t other = std::min(i, others.size() - 1);
    return absl::DataLossError(absl::StrCat(
        paths[i], " and ", other_paths[other],
        " are of different snapshots, which increments continue: a snapshot "
        "was saved again under its name"));
  }
  return absl::OkStatus();
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

absl::StatusOr<std::string> SnapshotDirectory::FileOf(
    const std::string& snapshot, const std::string& table,
    ShardRange shards) const {
  ASSIGN_OR_RETURN(const std::string directory, PathOf(snapshot));
  return absl::StrCat(directory, "/", FileStem(table), ".", shards.first, "-",
                      shards.count, kSuffix);
}

absl::StatusOr<TableFileSize> SnapshotDirectory::Save(
    const SparseTable& table, const std::string& snapshot,
    const TableFileOptions& options, std::string& path) const {
  if (options.base.has_value() && options.base->name == snapshot) {
    return absl::InvalidArgumentError(absl::StrCat(
        "snapshot \"", snapshot, "\" cannot be its own base: use a new name"));
  }
  ASSIGN_OR_RETURN(const std::string directory, PathOf(snapshot));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot create the snapshot ", directory, ": ", error.message()));
  }
  ASSIGN_OR_RETURN(path, FileOf(snapshot, table.spec().name, table.shards()));
  return WriteTableFile(table, options, path);
}

absl::StatusOr<SnapshotBase> SnapshotDirectory::BaseOf(
    const SparseTable& table, const std::string& base) const {
  ASSIGN_OR_RETURN(const std::string path,
                   FileOf(base, table.spec().name, table.shards()));
  const absl::StatusOr<TableFileInfo> info = ReadTableFileInfo(path);
  if (absl::IsNotFound(info.status())) {
    return absl::NotFoundError(
        absl::StrCat("the base \"", base, "\" does not have the file ", path,
                     ": save a snapshot without a base"));
  }
  RETURN_IF_ERROR(info);
  if (!table.KnowsSnapshot(info->snapshot)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "table \"", table.spec().name, "\": what changed since snapshot \"",
        base, "\" is not known here; it was saved before the last ",
        RowChanges::kMaxCuts,
        ", or before the table came to this server, or "
        "too many rows were removed: save a snapshot without a base"));
  }
  const int64_t increments =
      1 + (info->base.has_value() ? info->base->increments : 0);
  if (increments > SnapshotBase::kMaxIncrements) {
    return absl::FailedPreconditionError(
        absl::StrCat("table \"", table.spec().name, "\": snapshot \"", base,
                     "\" is the last of ", SnapshotBase::kMaxIncrements,
                     " increments: save a snapshot without a base"));
  }
  return SnapshotBase{base, info->snapshot, increments};
}

absl::StatusOr<SnapshotDirectory::Chain> SnapshotDirectory::ChainOf(
    const std::string& path, const TableFileInfo& info) const {
  Chain chain{{path}, {info}};
  while (chain.infos.back().base.has_value()) {
    const TableFileInfo& last = chain.infos.back();
    ASSIGN_OR_RETURN(std::string base_path,
                     FileOf(last.base->name, last.spec.name, last.shards));
    absl::StatusOr<TableFileInfo> base = ReadTableFileInfo(base_path);
    if (absl::IsNotFound(base.status())) {
      return absl::NotFoundError(absl::StrCat(
          base_path, " is missing, which ", chain.paths.back(), " continues"));
    }
    RETURN_IF_ERROR(base);
    const int64_t increments =
        base->base.has_value() ? base->base->increments : 0;
    if (increments + 1 != last.base->increments) {
      return absl::DataLossError(absl::StrCat(
          chain.paths.back(), " does not continue ", base_path,
          ": that file is of another snapshot than the one that was its base"));
    }
    chain.paths.push_back(std::move(base_path));
    chain.infos.push_back(*std::move(base));
  }
  std::reverse(chain.paths.begin(), chain.paths.end());
  std::reverse(chain.infos.begin(), chain.infos.end());
  return chain;
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
  std::optional<Chain> first;
  for (const TableFile& file : files) {
    if (file.info.shards.first >= shards.first + shards.count ||
        file.end() <= shards.first) {
      continue;
    }
    ASSIGN_OR_RETURN(const Chain chain, ChainOf(file.path, file.info));
    if (!first.has_value()) first = chain;
    RETURN_IF_ERROR(CheckSameSnapshots(first->paths, first->infos, chain.paths,
                                       chain.infos));
    RETURN_IF_ERROR(ReadTableFiles(chain.paths, *restored));
  }
  return restored;
}

}  // namespace hawser::ps
