#include "ps/server/held_tables.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/route/moved_table.h"
#include "telemetry/log.h"

namespace hawser::ps {
namespace {

// A table with the directory of its files, which must outlive it.
struct TableWithDirectory {
  std::unique_ptr<RecoveryDirectory> directory;
  std::shared_ptr<LoggedTable> table;
};

std::shared_ptr<LoggedTable> Together(
    std::unique_ptr<RecoveryDirectory> directory,
    std::shared_ptr<LoggedTable> table) {
  LoggedTable* const pointer = table.get();
  return {std::make_shared<TableWithDirectory>(
              TableWithDirectory{std::move(directory), std::move(table)}),
          pointer};
}

// The version on disk that a server takes when it starts: the one that the
// store records. Versions above all that this store has given are of a job that
// ended with its store; of two, the lower one was served, and the other only
// prepared.
std::optional<int64_t> VersionToTake(const std::set<int64_t>& versions,
                                     const RecordedTable& record) {
  if (versions.contains(record.route.version)) return record.route.version;
  const auto unknown =
      versions.upper_bound(std::max(record.route.version, record.reserved));
  if (unknown == versions.end()) return std::nullopt;
  return *unknown;
}

// The version that a restore has prepared, which may still record it; those
// that the store has passed over are none.
std::optional<int64_t> PreparedVersion(const std::set<int64_t>& versions,
                                       const RecordedTable& record) {
  const auto end = versions.upper_bound(record.reserved);
  if (end == versions.begin() || *std::prev(end) <= record.route.version) {
    return std::nullopt;
  }
  return *std::prev(end);
}

}  // namespace

absl::Status HeldTables::Recover(const std::string& directory,
                                 const SparseTableOptions& options,
                                 LookUp look_up) {
  directories_ = std::make_unique<TableDirectories>(directory);
  RETURN_IF_ERROR(directories_->Open());
  ASSIGN_OR_RETURN(const auto tables, directories_->List());
  for (const auto& [name, versions] : tables) {
    ASSIGN_OR_RETURN(const RecordedTable record, look_up(name));
    const std::optional<int64_t> taken = VersionToTake(versions, record);
    const std::optional<int64_t> prepared = PreparedVersion(versions, record);
    for (const int64_t version : versions) {
      if (version == taken || version == prepared) continue;
      telemetry::Log(telemetry::LogSeverity::kInfo,
                     absl::StrCat("version ", version, " of table \"", name,
                                  "\" is removed: the store records version ",
                                  record.route.version));
      RETURN_IF_ERROR(RemoveFiles(name, version));
    }
    for (const std::optional<int64_t> version : {taken, prepared}) {
      if (!version.has_value()) continue;
      ASSIGN_OR_RETURN(const Held recovered,
                       RecoverVersion(name, *version, record, options));
      // It was not complete before the server ended.
      if (recovered.table == nullptr) continue;
      const async::MutexLock lock(&mutex_);
      (version == taken ? held_ : prepared_)[name] = recovered;
    }
    if (!taken.has_value() && record.route.version != 0) {
      const async::MutexLock lock(&mutex_);
      NoteMove(name, record.route);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HeldTables::Held> HeldTables::RecoverVersion(
    const std::string& name, int64_t version, const RecordedTable& record,
    const SparseTableOptions& options) {
  std::unique_ptr<RecoveryDirectory> directory =
      directories_->Find(name, version);
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<LoggedTable>> tables,
                   LoggedTable::Recover(*directory, logging_, options));
  if (tables.empty()) return Held();
  tables[0]->set_push_observer(push_observer_);
  TableRoute route{version, {}};
  if (record.route.version == version) route = record.route;
  return Held{Together(std::move(directory), std::move(tables[0])), route};
}

absl::Status HeldTables::CheckRoom(const std::string& name) const {
  if (held_.contains(name) ||
      static_cast<int64_t>(held_.size()) < max_tables_) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "this server has ", max_tables_, " tables, which is its limit"));
}

absl::StatusOr<HeldTables::Held> HeldTables::FindLocked(const std::string& name,
                                                        int64_t version) const {
  const auto found = held_.find(name);
  if (found != held_.end()) {
    const Held& held = found->second;
    if (version == 0 || version == held.route.version) return held;
    return TableMovedError(name, version, held.route);
  }
  const auto moved = moved_.find(name);
  if (moved != moved_.end()) {
    return TableMovedError(name, version, moved->second);
  }
  return absl::NotFoundError(absl::StrCat("this server has no table \"", name,
                                          "\"; create it on all its servers"));
}

absl::StatusOr<HeldTables::Held> HeldTables::FindHeld(const std::string& name,
                                                      int64_t version) const {
  const async::MutexLock lock(&mutex_);
  return FindLocked(name, version);
}

bool HeldTables::IsPrepared(const std::string& name, int64_t version) const {
  const async::MutexLock lock(&mutex_);
  const auto found = prepared_.find(name);
  return found != prepared_.end() && found->second.route.version == version;
}

absl::StatusOr<HeldTables::Held> HeldTables::Find(const std::string& name,
                                                  int64_t version) {
  absl::StatusOr<Held> held = FindHeld(name, version);
  if (held.ok() || version == 0 || !IsPrepared(name, version)) return held;
  RETURN_IF_ERROR(Take(name, version));
  return FindHeld(name, version);
}

std::vector<HeldTables::Held> HeldTables::All() const {
  std::vector<Held> all;
  const async::MutexLock lock(&mutex_);
  for (const auto& [name, held] : held_) all.push_back(held);
  return all;
}

absl::StatusOr<HeldTables::Held> HeldTables::Write(
    std::unique_ptr<SparseTable> rows, const TableRoute& route) const {
  std::unique_ptr<RecoveryDirectory> directory;
  if (directories_ != nullptr) {
    ASSIGN_OR_RETURN(directory,
                     directories_->Create(rows->spec().name, route.version));
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<LoggedTable> table,
      LoggedTable::Create(std::move(rows), directory.get(), logging_));
  table->set_push_observer(push_observer_);
  return Held{Together(std::move(directory), std::move(table)), route};
}

absl::StatusOr<HeldTables::Held> HeldTables::Add(
    const std::string& name, const TableRoute& route,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<SparseTable>>()> make) {
  const async::MutexLock changing(&changing_);
  {
    const async::MutexLock lock(&mutex_);
    if (const auto found = held_.find(name); found != held_.end()) {
      return found->second;
    }
    // One that was dropped here, by a client that has not noticed.
    if (const auto moved = moved_.find(name);
        moved != moved_.end() && moved->second.version > route.version) {
      return TableMovedError(name, route.version, moved->second);
    }
    RETURN_IF_ERROR(CheckRoom(name));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SparseTable> rows, make());
  ASSIGN_OR_RETURN(const Held added, Write(std::move(rows), route));
  const async::MutexLock lock(&mutex_);
  held_[name] = added;
  moved_.erase(name);
  return added;
}

absl::Status HeldTables::Prepare(std::unique_ptr<SparseTable> rows,
                                 const TableRoute& route) {
  const std::string name = rows->spec().name;
  {
    const async::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckRoom(name));
    if (const auto held = held_.find(name);
        held != held_.end() && held->second.route.version >= route.version) {
      return TableMovedError(name, route.version, held->second.route);
    }
  }
  // Takes long; other tables may be added meanwhile.
  ASSIGN_OR_RETURN(Held prepared, Write(std::move(rows), route));
  const async::MutexLock changing(&changing_);
  Held before;
  {
    const async::MutexLock lock(&mutex_);
    before = std::exchange(prepared_[name], std::move(prepared));
  }
  if (before.table == nullptr || before.route.version == route.version) {
    return absl::OkStatus();
  }
  return RemoveFiles(name, before.route.version);
}

absl::Status HeldTables::Take(const std::string& name, int64_t version) {
  const async::MutexLock changing(&changing_);
  if (!IsPrepared(name, version)) return absl::OkStatus();
  std::optional<int64_t> before;
  {
    const async::MutexLock lock(&mutex_);
    if (const auto held = held_.find(name); held != held_.end()) {
      before = held->second.route.version;
    }
  }
  // Before the first request is served: what is on disk then says which version
  // was served last.
  if (before.has_value()) RETURN_IF_ERROR(RemoveFiles(name, *before));
  const async::MutexLock lock(&mutex_);
  held_[name] = std::move(prepared_.extract(name).mapped());
  moved_.erase(name);
  return absl::OkStatus();
}

absl::Status HeldTables::GiveUp(const std::string& name, int64_t version) {
  const async::MutexLock changing(&changing_);
  if (!IsPrepared(name, version)) return absl::OkStatus();
  {
    const async::MutexLock lock(&mutex_);
    prepared_.erase(name);
  }
  return RemoveFiles(name, version);
}

absl::Status HeldTables::Drop(const std::string& name,
                              const TableRoute& route) {
  const async::MutexLock changing(&changing_);
  std::vector<int64_t> dropped;
  {
    const async::MutexLock lock(&mutex_);
    for (Tables* tables : {&held_, &prepared_}) {
      const auto found = tables->find(name);
      if (found == tables->end()) continue;
      // It is here again, in a later version.
      if (found->second.route.version >= route.version) return absl::OkStatus();
      dropped.push_back(found->second.route.version);
    }
    held_.erase(name);
    prepared_.erase(name);
    NoteMove(name, route);
  }
  for (const int64_t version : dropped) {
    RETURN_IF_ERROR(RemoveFiles(name, version));
  }
  return absl::OkStatus();
}

absl::Status HeldTables::RemoveFiles(const std::string& name,
                                     int64_t version) const {
  return directories_ == nullptr ? absl::OkStatus()
                                 : directories_->Remove(name, version);
}

void HeldTables::NoteMove(const std::string& name, const TableRoute& route) {
  moved_[name] = route;
  // Clients that read the store need no note.
  if (static_cast<int64_t>(moved_.size()) > max_tables_) {
    moved_.erase(moved_.begin()->first == name ? std::next(moved_.begin())
                                               : moved_.begin());
  }
}

}  // namespace hawser::ps
