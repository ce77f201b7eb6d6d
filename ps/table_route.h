// The servers of a table, as recorded in the store of its job.

#ifndef HAWSER_PS_TABLE_ROUTE_H_
#define HAWSER_PS_TABLE_ROUTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "ps/storage/table_spec.h"
#include "store/store.h"

namespace hawser::v1 {
class TableRoute;
}  // namespace hawser::v1

namespace hawser::ps {

// A version of a table, and the servers that hold it.
struct TableRoute {
  // From 1 on: each restore has a higher one than all before.
  int64_t version = 0;
  // In the order of their shards: Table.
  std::vector<std::string> servers = {};

  friend bool operator==(const TableRoute&, const TableRoute&) = default;
};

v1::TableRoute ToProto(const TableRoute& route);
TableRoute FromProto(const v1::TableRoute& proto);

struct RecordedTable {
  // Version 0: the table is not recorded.
  TableRoute route = {};
  TableSpec spec = {};
  // Highest version that was reserved in this store.
  int64_t reserved = 0;
};

struct TableVersion {
  std::string table;
  int64_t version = 0;
};

// The functions read and write the store, and block, except WhenTablesMove.
// Errors of all are those of the store, and kDataLoss: the record cannot be
// read.

// kNotFound: no table of that name was created or restored in the job.
absl::StatusOr<RecordedTable> ReadTableRoute(store::Store& store,
                                             const std::string& job,
                                             const std::string& table);
// The same for a server that starts: waits for the store, and returns version 0
// if there is no such table.
absl::StatusOr<RecordedTable> AwaitTableRoute(store::Store& store,
                                              const std::string& job,
                                              const std::string& table);

// Completes once the store records a version above that of at least one of
// `tables`, with the records of all whose version is above: `spec.name` is the
// table. Ignores records that cannot be read. Does not block. Cancel the future
// to end the watch. `tables` must not be empty. Errors are those of
// Store::WhenChanged.
async::Future<std::vector<RecordedTable>> WhenTablesMove(
    store::Store& store, const std::string& job,
    std::vector<TableVersion> tables);

// Records a table, unless it is recorded. Returns the record. Several workers
// may do so concurrently.
absl::StatusOr<RecordedTable> RecordNewTable(store::Store& store,
                                             const std::string& job,
                                             const TableRoute& route,
                                             const TableSpec& spec);

// Returns a version that is higher than all that were recorded or reserved, and
// at least `least`.
absl::StatusOr<int64_t> ReserveVersion(store::Store& store,
                                       const std::string& job,
                                       const std::string& table, int64_t least);

// Replaces the record by one with a version that was reserved. From then on the
// table is where it says. Returns the record before. kAborted: a higher version
// is recorded, because the table was restored again meanwhile.
absl::StatusOr<RecordedTable> RecordMove(store::Store& store,
                                         const std::string& job,
                                         const TableRoute& route,
                                         const TableSpec& spec);

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_ROUTE_H_
