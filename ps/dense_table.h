// Named tensors on servers, in chunks.

#ifndef HAWSER_PS_DENSE_TABLE_H_
#define HAWSER_PS_DENSE_TABLE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "optim/rule_spec.h"
#include "ps/storage/consistency.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
class Agent;
}  // namespace hawser::rpc

namespace hawser::ps {

struct DenseTableSpec {
  // As TableSpec::name.
  std::string name = {};
  // At least one element in all.
  std::vector<DenseTensor> tensors = {};
  // How a push updates the tensors. The rule must treat each element alone: all
  // but LAMB, RowWiseAdagrad and SparseAdam do.
  optim::RuleSpec rule = {};
  // Type in which weights are stored, as TableSpec::dtype.
  tensor::DType dtype = tensor::DType::kF32;
  // As TableSpec::consistency.
  Consistency consistency = {};
};

// The parameters of a model, or other tensors that a push updates as a whole,
// on one or several servers:
//
//   ASSIGN_OR_RETURN(
//       ps::DenseTable table,
//       ps::DenseTable::Create(worker->agent(),
//                              {.name = "model",
//                               .tensors = {{"weight", {10, 784}},
//                                           {"bias", {10}}},
//                               .rule = optim::Adam({.lr = 0.001})},
//                              {"ps0", "ps1"}));
//   RETURN_IF_ERROR(
//       table.Assign({weight, bias}, {.keep_existing = true}).Wait());
//   ASSIGN_OR_RETURN(std::vector<Tensor> weights, table.Pull().Wait());
//   ... gradients ...
//   ASSIGN_OR_RETURN(weights, table.PushPull(gradients).Wait());
//
// A ps::Table, whose rows are chunks of the tensors, spread evenly over the
// servers: it has the guarantees of a table, its logs and its snapshots. An
// operation takes one round trip to each server, or several at the same time if
// a server has more than 16 MiB. Chunks are updated and read atomically;
// the whole is not, if several workers push.
//
// Weights are 0 before they are assigned. Lists of tensors are in the order of
// tensors(); their elements are f32 on the CPU. A cheap handle; all methods are
// thread-safe. Errors are those of Table, and kInvalidArgument, naming the
// tensor that has another dtype or shape; after any other error of a push, some
// chunks may have been updated, and others not.
class DenseTable {
 public:
  // As Table::Create. kInvalidArgument also: the rule cannot update chunks.
  static absl::StatusOr<DenseTable> Create(rpc::Agent& agent,
                                           const DenseTableSpec& description,
                                           std::vector<std::string> servers);
  // As Table::Open and Table::Restore. kInvalidArgument also: the table has no
  // tensors.
  static absl::StatusOr<DenseTable> Open(rpc::Agent& agent,
                                         const std::string& name,
                                         std::vector<std::string> servers);
  static absl::StatusOr<DenseTable> Restore(rpc::Agent& agent,
                                            const std::string& name,
                                            const std::string& snapshot,
                                            std::vector<std::string> servers);

  const std::vector<DenseTensor>& tensors() const;
  // For snapshots and the size.
  const Table& table() const;

  // Returns the tensors, as views of one memory.
  async::Future<std::vector<Tensor>> Pull() const;

  // Updates the tensors by the table's rule. An undefined gradient is zero.
  // Gradients are not changed until the future completes; they may be dropped.
  async::Future<void> Push(const std::vector<Tensor>& gradients,
                           const PushOptions& options = {}) const;

  // The same, and returns the tensors after the update.
  async::Future<std::vector<Tensor>> PushPull(
      const std::vector<Tensor>& gradients,
      const PushOptions& options = {}) const;

  // Sets the tensors, which are not changed until the future completes; the
  // state of the rule begins anew. With keep_existing,
  // chunks that were assigned or pushed before stay as they are: any number of
  // workers may assign initial weights, of which each chunk takes the first.
  async::Future<void> Assign(const std::vector<Tensor>& weights,
                             const AssignOptions& options = {}) const;

 private:
  class State;

  explicit DenseTable(std::shared_ptr<const State> state)
      : state_(std::move(state)) {}

  static absl::StatusOr<DenseTable> FromTable(Table table);

  std::shared_ptr<const State> state_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_DENSE_TABLE_H_
