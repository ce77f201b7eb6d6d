// The tables of one server.

#ifndef HAWSER_PS_TABLE_SERVER_H_
#define HAWSER_PS_TABLE_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "proto/ps.pb.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/snapshot_directory.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/lazy_tensor.h"

namespace hawser::ps {

// Limits on the requests of a peer. Requests above them fail with
// kResourceExhausted, before anything is read.
struct TableLimits {
  int64_t max_tables = 1024;
  // Of a pull or push.
  int64_t max_keys = int64_t{1} << 22;
  // Of a table, on this server. 0: as many as fit into three quarters of the
  // machine's memory. A request that would create more fails; rows that exist
  // are served.
  int64_t max_rows = 0;
  // Of the rows of a pull or push.
  int64_t max_row_bytes = int64_t{1} << 28;
};

// Handlers of the methods of proto/ps.proto. Gradients are read from where the
// transport has them, partition by partition.
//
// Thread-safe.
class TableServer {
 public:
  // `snapshot_directory` may be empty if `logging` is kOff.
  TableServer(const TableLimits& limits, std::string snapshot_directory,
              PushLogging logging)
      : limits_(limits),
        directory_(snapshot_directory),
        snapshots_(std::move(snapshot_directory)),
        logging_(logging) {}

  // Takes the tables that a worker of this name had when it ended, if pushes
  // are logged. Call once, first. Errors of LoggedTable::Recover, and
  // kInvalidArgument: pushes are logged, but there is no snapshot directory.
  absl::Status Recover(const std::string& worker);

  // kAlreadyExists: the table exists with another description or other shards;
  // the error names the difference.
  absl::Status Create(const v1::CreateTableRequest& request);

  // kNotFound: there is no such table.
  absl::StatusOr<v1::DescribeTableReply> Describe(
      const v1::DescribeTableRequest& request) const;

  // Returns the rows. `call` has the lazy tensors of the request.
  //
  // kNotFound            there is no such table.
  // kInvalidArgument     a tensor is missing or has a wrong dtype or shape; for
  //                      a push, the keys are not in order.
  // kFailedPrecondition  this server does not hold a key's shard.
  // kResourceExhausted   a limit, or out of memory.
  absl::StatusOr<rpc::Message<v1::PullReply>> Pull(
      const rpc::MethodCall& call, const v1::PullRequest& request);

  // Applies the push, if it was not applied before. Errors as Pull; nothing was
  // applied, except after kResourceExhausted by lack of memory, after which the
  // same push with the same number applies the rest.
  absl::Status Push(const rpc::MethodCall& call,
                    const v1::PushRequest& request);

  // The same for sums of rows. kInvalidArgument also: a bag is out of range.
  absl::StatusOr<rpc::Message<v1::PullSumsReply>> PullSums(
      const rpc::MethodCall& call, const v1::PullSumsRequest& request);
  absl::Status PushSums(const rpc::MethodCall& call,
                        const v1::PushSumsRequest& request);

  // Errors of SnapshotDirectory, and kNotFound: there is no such table.
  absl::StatusOr<v1::SaveTableReply> Save(const v1::SaveTableRequest& request);
  // Errors of SnapshotDirectory; the tables are then as before.
  absl::StatusOr<v1::RestoreTableReply> Restore(
      const v1::RestoreTableRequest& request);

  // Drops what is remembered of a client that makes no more calls.
  void Forget(rpc::Incarnation client);

  // "tables", "rows" and "bytes".
  std::map<std::string, int64_t> DebugNumbers() const;

 private:
  absl::StatusOr<std::shared_ptr<LoggedTable>> Find(
      const std::string& name) const;
  std::vector<std::shared_ptr<LoggedTable>> Tables() const;
  // `num_rows`: of the reply or of the gradients.
  absl::Status CheckLimits(const SparseTable& table,
                           const rpc::LazyTensor& keys, int64_t num_rows) const;

  absl::Status CheckNumberOfTables() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the table exists. Errors of Create if it is another one, or if
  // there are too many.
  absl::StatusOr<bool> Exists(const TableSpec& spec, ShardRange shards) const;
  // Adds the table, or replaces the one with its name.
  absl::Status Add(std::unique_ptr<SparseTable> rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(adding_);

  const TableLimits limits_;
  const std::string directory_;
  const SnapshotDirectory snapshots_;
  const PushLogging logging_;
  // Null if pushes are not logged. Set by Recover.
  std::unique_ptr<RecoveryDirectory> recovery_;
  // Held while files of a new table are written; requests for other tables go
  // on meanwhile. Taken before mutex_.
  async::Mutex adding_;
  mutable async::Mutex mutex_;
  std::map<std::string, std::shared_ptr<LoggedTable>> tables_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_SERVER_H_
