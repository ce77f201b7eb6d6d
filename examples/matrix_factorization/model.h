// Matrix factorization with biases.

#ifndef HAWSER_EXAMPLES_MATRIX_FACTORIZATION_MODEL_H_
#define HAWSER_EXAMPLES_MATRIX_FACTORIZATION_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "data/tabular/sample_batches.h"
#include "optim/rule_spec.h"
#include "ps/storage/table_spec.h"
#include "ps/training/sparse_model.h"
#include "tensor/tensor.h"

namespace hawser::examples::matrix_factorization {

// Predicts the rating r of an item i by a user u as
//
//   r = mean + b_u + b_i + p_u . q_i
//
// (Koren, Bell and Volinsky, IEEE Computer 2009). The row of a user or an item
// is its bias, followed by its factors. The loss is the mean squared error plus
// `l2` times the mean of the squared rows.
class Factorization final : public ps::SparseModel {
 public:
  struct Options {
    int64_t num_factors = 16;
    double mean_rating = 0;
    double l2 = 0;
    // Describes the tables but for their names and widths.
    ps::TableSpec table = {};
  };

  explicit Factorization(const Options& options) : options_(options) {}

  std::vector<ps::TableSpec> tables() const override;
  absl::StatusOr<std::vector<Tensor>> Keys(
      const data::SampleBatch& batch) const override;
  absl::StatusOr<Tensor> Forward(const std::vector<Tensor>& rows,
                                 const data::SampleBatch& batch) const override;
  absl::StatusOr<Tensor> Loss(const Tensor& predictions,
                              const std::vector<Tensor>& rows,
                              const data::SampleBatch& batch) const override;

 private:
  const Options options_;
};

}  // namespace hawser::examples::matrix_factorization

#endif  // HAWSER_EXAMPLES_MATRIX_FACTORIZATION_MODEL_H_
