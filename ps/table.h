// Tables with dynamic keys on servers.

#ifndef HAWSER_PS_TABLE_H_
#define HAWSER_PS_TABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "ps/row_encoding.h"
#include "ps/row_values.h"
#include "ps/storage/table_spec.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
class Agent;
}  // namespace hawser::rpc

namespace hawser::ps {

class WorkerClock;

struct PullOptions {
  // Whether missing rows are created. If not, the pull returns their initial
  // weights, for example to evaluate a model. Tables with Retention options
  // create rows only for pushes.
  bool create_missing = true;
  // Form in which rows travel.
  RowEncoding encoding = RowEncoding::kF32;
  // A read function of the servers (ps/read/read_function.h), whose results are
  // returned instead of the rows: their last dimension is that of the function,
  // or 0 if there are no keys. Empty: the rows.
  std::string function = {};
  // Of the function: f32, on the CPU, at most 16 of 1 MiB together.
  std::vector<Tensor> arguments = {};
};

struct PushOptions {
  // The base of the table's schedule, also in key ranges. Default: that of the
  // rule of each row.
  std::optional<double> learning_rate = std::nullopt;
  // The step of the training, for schedules, from 0 to 2^53. Default: the clock
  // of the worker; in an asynchronous table, the number of the row's earlier
  // updates.
  std::optional<int64_t> step = std::nullopt;
  // Form in which gradients travel, and the rows that PushPull returns.
  RowEncoding encoding = RowEncoding::kF32;
};

struct AssignOptions {
  // Whether rows that exist keep their weights and state.
  bool keep_existing = false;
};

struct SaveOptions {
  // Name of an earlier snapshot. The new one has only what changed since, and
  // restores together with it. It may be an increment as well: 64 follow a
  // snapshot with all rows. Base the next increment on the last snapshot whose
  // Save was OK. Empty: all rows are written.
  std::string base = {};
};

struct TableSize {
  int64_t rows = 0;
  // Memory on the servers.
  int64_t bytes = 0;
};

// A table with dynamic keys on one or several servers: rows of numbers by
// 64-bit keys, for example the embeddings of users and items.
//
//   ASSIGN_OR_RETURN(
//       ps::Table table,
//       ps::Table::Create(worker->agent(),
//                         {.name = "users", .width = 64}, {"ps0", "ps1"}));
//   ASSIGN_OR_RETURN(Tensor rows, table.Pull(keys).Wait());
//   RETURN_IF_ERROR(table.Push(keys, gradients).Wait());
//
// A cheap handle; copies refer to the same table. All methods are thread-safe.
// The agent and the servers need a TableService. Servers hold consecutive
// shards, in the order of their names in the list.
//
// A handle follows its table that is restored onto other servers: a request for
// the version before is sent again, within the timeout of a call, and a push is
// applied once to the table that was restored. Requests with a clock are not
// sent again but fail with kAborted: the clocks of the workers begin anew, join
// them again.
//
// Unless the table is asynchronous, pushes need a ps::WorkerClock, and pulls
// then wait for other workers as TableSpec::consistency demands, at most for
// the worker's call timeout; without one, pulls do not wait.
//
// Errors of calls are those of rpc::Agent, which name the server, and those
// below.
class Table {
 public:
  // Creates the table on the workers `servers`, where it does not exist yet.
  // Any number of workers may create the same table concurrently.
  //
  //   kInvalidArgument     NormalizeTableSpec rejects the description;
  //   `servers` is empty,
  //                        repeats a name or has more names than the table has
  //                        shards.
  //   kAlreadyExists       the table exists with another description, or on
  //                        other servers: Open finds it.
  //   kFailedPrecondition  the agent does not have a TableService; or servers
  //                        have different versions of the table, because a
  //                        restore was interrupted: restore it again.
  //   Errors of the job's store, which records the servers.
  static absl::StatusOr<Table> Create(rpc::Agent& agent,
                                      const TableSpec& description,
                                      std::vector<std::string> servers);
  // The same, without waiting.
  static async::Future<Table> CreateAsync(rpc::Agent& agent,
                                          const TableSpec& description,
                                          std::vector<std::string> servers);

  // Opens a table that exists, on the servers that the job's store records.
  //
  //   kNotFound            the job has no such table, or a server lost it.
  //   kFailedPrecondition  the servers do not hold all shards.
  //   Errors of the store.
  static absl::StatusOr<Table> Open(rpc::Agent& agent, const std::string& name);
  // The same on these servers, which must hold all shards in this order.
  static absl::StatusOr<Table> Open(rpc::Agent& agent, const std::string& name,
                                    std::vector<std::string> servers);

  const TableSpec& spec() const;
  // Those of the present version, as far as this handle knows.
  std::vector<std::string> servers() const;

  // Returns the rows of `keys`.
  //
  //   keys    i64, any shape, in any order, also repeated: a 64-bit number
  //           without sign in the bits of each element.
  //   result  f32[keys..., width]. From a server on the same machine, up to 512
  //           KiB may lie in memory that both share, which has room for 2 MiB
  //           of results: clone those that are kept for long.
  //
  // kInvalidArgument: `keys` has another dtype or is not on the CPU; or a
  // server does not have the function, or the function refuses its arguments.
  async::Future<Tensor> Pull(const Tensor& keys,
                             const PullOptions& options = {}) const;

  // Updates the rows of `keys` by the table's rule. Gradients of a repeated key
  // are added first. Completes once all servers have applied the push, each
  // exactly once, however often messages are lost and repeated. Those of a
  // synchronous table do so once all workers have completed the clock: advance
  // it before waiting.
  //
  //   keys       i64, any shape.
  //   gradients  f32[keys..., width], in one tensor or in parts. Not changed
  //              until the future completes.
  //
  // kInvalidArgument: dtypes or shapes are wrong. After any other error some
  // rows may have been updated, and others not.
  async::Future<void> Push(const Tensor& keys, const RowValues& gradients,
                           const PushOptions& options = {}) const;

  // Updates rows as Push does, and returns them after the update, in the same
  // round trip. They may contain updates of other workers as well.
  //
  //   keys       i64, any shape.
  //   gradients  f32[keys..., width].
  //   result     f32[keys..., width].
  async::Future<Tensor> PushPull(const Tensor& keys, const RowValues& gradients,
                                 const PushOptions& options = {}) const;

  // Makes the rows of `keys` new rows with these weights, for example initial
  // ones or those of a file: the state of the rule and the number of updates
  // begin anew. Completes as Push does, and survives what a push survives.
  //
  //   keys     i64, any shape, without repeats.
  //   weights  f32[keys..., width]. Not changed until the future completes.
  //
  // kInvalidArgument: dtypes or shapes are wrong, or a key is repeated.
  async::Future<void> Assign(const Tensor& keys, const RowValues& weights,
                             const AssignOptions& options = {}) const;

  // Returns the sums of rows, which the servers add: a bag of keys costs one
  // row on the network for each server.
  //
  //   keys    i64[bags..., n]. Each group of n keys is a bag.
  //   result  f32[bags..., width].
  //
  // kInvalidArgument: `keys` has another dtype, no dimension, or is not on the
  // CPU.
  async::Future<Tensor> PullSums(const Tensor& keys,
                                 const PullOptions& options = {}) const;

  // Updates rows by the gradients of such sums: the gradient of a row is the
  // sum of those of the bags in which its key is. As Push otherwise.
  //
  //   keys       i64[bags..., n].
  //   gradients  f32[bags..., width].
  async::Future<void> PushSums(const Tensor& keys, const Tensor& gradients,
                               const PushOptions& options = {}) const;

  // Writes all rows to the snapshot `name` in the snapshot directories of the
  // servers, while pulls and pushes continue: those of a part of a server's
  // rows wait while this part is copied in memory. Use a new name for each
  // snapshot. Takes at most an hour.
  //
  //   kInvalidArgument     `name` is not 1 to 200 letters, digits, '_', '-' and
  //                        '.', not beginning with '.'.
  //   kFailedPrecondition  a server has no snapshot directory.
  //   kAborted             the table was restored meanwhile: save it again,
  //                        under another name.
  //   Errors of the servers' file systems, which name the file.
  //
  // With SaveOptions::base also:
  //   kNotFound            a server does not have the base.
  //   kFailedPrecondition  a server does not know what changed since, or the
  //                        chain is too long: save a snapshot without a base.
  //   kDataLoss            the servers' files of the base are of different
  //                        saves; the new snapshot cannot be restored.
  async::Future<TableSize> Save(const std::string& name,
                                const SaveOptions& options = {}) const;

  // Replaces the table by its next version, with the rows of the snapshot
  // `snapshot`, on any number of servers, which must see the files of all
  // servers that saved it, and of the snapshots that it continues. Pushes after
  // the snapshot are gone, except for those under way, which are applied once
  // to the new version. Servers that had the table drop it, or do so when they
  // start again.
  //
  // All servers read the files first; after the errors below the table is as
  // before. Once the store records the new version, each server takes it: after
  // an error the table is restored, except for the rows of the server that the
  // error names.
  //
  //   kNotFound   a server does not see the files of some shards.
  //   kDataLoss   a file is damaged.
  //   kAborted    the table was restored by another caller meanwhile.
  static absl::StatusOr<Table> Restore(rpc::Agent& agent,
                                       const std::string& name,
                                       const std::string& snapshot,
                                       std::vector<std::string> servers);
  // The same, without waiting.
  static async::Future<Table> RestoreAsync(rpc::Agent& agent,
                                           const std::string& name,
                                           const std::string& snapshot,
                                           std::vector<std::string> servers);

  // The rows that exist, and their memory, on all servers.
  async::Future<TableSize> Size() const;

 private:
  friend class WorkerClock;
  class State;

  explicit Table(std::shared_ptr<const State> state)
      : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_H_
