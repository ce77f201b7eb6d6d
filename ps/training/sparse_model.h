// Interface of models whose rows are in tables.

#ifndef HAWSER_PS_TRAINING_SPARSE_MODEL_H_
#define HAWSER_PS_TRAINING_SPARSE_MODEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "data/tabular/sample_batches.h"
#include "nn/module.h"
#include "optim/rule_spec.h"
#include "ps/storage/table_spec.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// A model that predicts a number for each sample from rows of tables, such as
// embeddings, and perhaps from dense parameters. SparseTrainer trains it.
//
// Called by one thread at a time.
class SparseModel {
 public:
  virtual ~SparseModel() = default;

  // The tables, at least one.
  virtual std::vector<TableSpec> tables() const = 0;

  // The dense parameters, owned by the model; null: none. Models with the same
  // configuration have the same initial values.
  virtual nn::Module* dense() { return nullptr; }
  // Their update rule.
  virtual optim::RuleSpec dense_rule() const { return {}; }

  // Returns the keys to look up in each table, i64 of any shape.
  virtual absl::StatusOr<std::vector<Tensor>> Keys(
      const data::SampleBatch& batch) const = 0;

  // Returns the predictions f32[n, 1], for example logits, by operations of
  // autograd/ops.
  //
  //   rows  f32[keys..., width] for each table.
  virtual absl::StatusOr<Tensor> Forward(
      const std::vector<Tensor>& rows,
      const data::SampleBatch& batch) const = 0;

  // Returns the loss of predictions from these rows, a tensor of rank 0.
  virtual absl::StatusOr<Tensor> Loss(const Tensor& predictions,
                                      const std::vector<Tensor>& rows,
                                      const data::SampleBatch& batch) const = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TRAINING_SPARSE_MODEL_H_
