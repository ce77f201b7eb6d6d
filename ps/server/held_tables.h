// The tables that a server holds, each in one version.

#ifndef HAWSER_PS_SERVER_HELD_TABLES_H_
#define HAWSER_PS_SERVER_HELD_TABLES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "ps/server/table_directories.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/push_observer.h"
#include "ps/storage/sparse_table.h"
#include "ps/table_route.h"

namespace hawser::ps {

// Replaces a table by its next version in two steps, so that all its servers
// have one version or the other: each prepares the next one, the store records
// it, and then each takes it and drops the one before. What a server has on
// disk is decided by the store when it starts again.
//
// Thread-safe. Errors: kFailedPrecondition with the route that is known
// (ps/route/moved_table.h), the table is here in another version, or was;
// kResourceExhausted, too many tables; kNotFound, no such table; those of the
// file system.
class HeldTables {
 public:
  struct Held {
    std::shared_ptr<LoggedTable> table;
    TableRoute route;
  };
  // Reads the record of a table from the store of the job.
  using LookUp =
      absl::FunctionRef<absl::StatusOr<RecordedTable>(const std::string&)>;

  HeldTables(int64_t max_tables, PushLogging logging, PushObserver observer)
      : max_tables_(max_tables),
        logging_(logging),
        push_observer_(std::move(observer)) {}

  // Takes the tables in `directory`, in the versions that the store records,
  // and what was prepared for a restore that may be recorded later; other
  // versions are removed. A table that the store does not know, because it is a
  // new one, is taken as it was. Call once, first, if pushes are logged. Errors
  // of LoggedTable::Recover.
  absl::Status Recover(const std::string& directory,
                       const SparseTableOptions& options, LookUp look_up);

  // The table in this version, or in any if it is 0. Takes a version that was
  // prepared: a request for it comes from a client that has read the store.
  absl::StatusOr<Held> Find(const std::string& name, int64_t version);
  // The same, without taking one.
  absl::StatusOr<Held> FindHeld(const std::string& name, int64_t version) const;
  std::vector<Held> All() const;

  // Adds a new table, unless one of its name is here. `make` makes it. Returns
  // what is here then.
  absl::StatusOr<Held> Add(
      const std::string& name, const TableRoute& route,
      absl::FunctionRef<absl::StatusOr<std::unique_ptr<SparseTable>>()> make);

  // Prepares a version of a table, in place of one that was prepared before.
  absl::Status Prepare(std::unique_ptr<SparseTable> rows,
                       const TableRoute& route);
  // Removes what is prepared of this version.
  absl::Status GiveUp(const std::string& name, int64_t version);
  // Removes the versions before that of `route`, which other servers hold.
  absl::Status Drop(const std::string& name, const TableRoute& route);

 private:
  using Tables = std::map<std::string, Held>;

  absl::Status CheckRoom(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Held> FindLocked(const std::string& name,
                                  int64_t version) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether that version is prepared.
  bool IsPrepared(const std::string& name, int64_t version) const;
  // Takes the version that was prepared.
  absl::Status Take(const std::string& name, int64_t version);
  // Writes the files of a new table.
  absl::StatusOr<Held> Write(std::unique_ptr<SparseTable> rows,
                             const TableRoute& route) const;
  // Reads a version from its directory. Null if it is not complete.
  absl::StatusOr<Held> RecoverVersion(const std::string& name, int64_t version,
                                      const RecordedTable& record,
                                      const SparseTableOptions& options);
  absl::Status RemoveFiles(const std::string& name, int64_t version) const;
  void NoteMove(const std::string& name, const TableRoute& route)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_tables_;
  const PushLogging logging_;
  const PushObserver push_observer_;
  // Null if pushes are not logged. Set by Recover.
  std::unique_ptr<TableDirectories> directories_;
  // Held while tables are added and removed, with their files; requests go on
  // meanwhile. Taken before mutex_.
  async::Mutex changing_;
  mutable async::Mutex mutex_;
  Tables held_ ABSL_GUARDED_BY(mutex_);
  Tables prepared_ ABSL_GUARDED_BY(mutex_);
  // Where tables are that are not here any more.
  std::map<std::string, TableRoute> moved_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_HELD_TABLES_H_
