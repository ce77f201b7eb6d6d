// The servers of tables in a running job, seen from outside of the job.

#ifndef HAWSER_CLI_PS_TABLE_SERVERS_H_
#define HAWSER_CLI_PS_TABLE_SERVERS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/job_access.h"
#include "cli/worker_client.h"
#include "net/auth/credentials.h"
#include "proto/ps.pb.h"
#include "rpc/identity/worker_info.h"

namespace hawser::cli {

// A worker that serves tables, or that did not reply.
struct TableServer {
  rpc::WorkerInfo worker;
  std::shared_ptr<WorkerClient> client;
  // The error, if the worker did not reply.
  absl::Status status;
  v1::ListTablesReply reply;
};

// A server's part of a table.
struct TablePart {
  const TableServer* server;
  const v1::TableStatus* table;
};

// Asks the worker `name`, or all workers of the job if it is empty, for their
// tables. Leaves out workers without a service for tables. Errors of
// MembersOf and FindMember.
absl::StatusOr<std::vector<TableServer>> FindTableServers(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials,
    const std::string& name = "");

// The parts of `table`, in the order of their shards.
std::vector<TablePart> PartsOf(const std::string& table,
                               const std::vector<TableServer>& servers);

// Whether the parts are of one table and have each of its shards once.
bool IsComplete(const std::vector<TablePart>& parts);

// The parts of `table`, which must be complete.
//
//   kNotFound            no server has the table; names the existing ones.
//   kUnavailable         a part is missing, and a worker did not reply.
//   kFailedPrecondition  a part is missing.
absl::StatusOr<std::vector<TablePart>> CompleteTable(
    const std::string& table, const std::vector<TableServer>& servers);

// Runs call(i) for each i below `count`, for several at the same time, and
// returns when all have ended.
void CallConcurrently(size_t count, absl::FunctionRef<void(size_t)> call);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PS_TABLE_SERVERS_H_
