// The servers of a table, as recorded in the store of its job.

#ifndef HAWSER_PS_TABLE_ROUTE_H_
#define HAWSER_PS_TABLE_ROUTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "store/store.h"

namespace hawser::ps {

struct TableRoute {
  // Counts the changes, from 1 on.
  int64_t version = 0;
  // In the order of their shards: Table.
  std::vector<std::string> servers;
};

// Reads from the store, and blocks.
//
//   kNotFound  no table of that name was created or restored in the job.
//   kDataLoss  the record cannot be read.
//   Errors of the store.
absl::StatusOr<TableRoute> ReadTableRoute(store::Store& store,
                                          const std::string& job,
                                          const std::string& table);

// Records the servers, with the next version unless they are recorded already.
// Returns the record. Several workers may do so concurrently. Errors of the
// store, and kDataLoss as above.
absl::StatusOr<TableRoute> WriteTableRoute(
    store::Store& store, const std::string& job, const std::string& table,
    const std::vector<std::string>& servers);

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_ROUTE_H_
