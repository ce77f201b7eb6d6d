#include "examples/matrix_factorization/model.h"

#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "nn/loss.h"

namespace hawser::examples::matrix_factorization {

std::vector<ps::TableSpec> Factorization::tables() const {
  ps::TableSpec users = options_.table;
  users.width = 1 + options_.num_factors;
  ps::TableSpec items = users;
  users.name = "users";
  items.name = "items";
  ++items.seed;
  return {users, items};
}

absl::StatusOr<std::vector<Tensor>> Factorization::Keys(
    const data::SampleBatch& batch) const {
  ASSIGN_OR_RETURN(const Tensor users, batch.keys.Select(1, 0));
  ASSIGN_OR_RETURN(const Tensor items, batch.keys.Select(1, 1));
  return std::vector<Tensor>{users, items};
}

absl::StatusOr<Tensor> Factorization::Forward(const std::vector<Tensor>& rows,
                                              const data::SampleBatch&) const {
  Tensor biases[2];
  Tensor factors[2];
  for (const int i : {0, 1}) {
    ASSIGN_OR_RETURN(biases[i], autograd::Narrow(rows[i], 1, 0, 1));
    ASSIGN_OR_RETURN(factors[i],
                     autograd::Narrow(rows[i], 1, 1, options_.num_factors));
  }
  ASSIGN_OR_RETURN(const Tensor products,
                   autograd::Mul(factors[0], factors[1]));
  ASSIGN_OR_RETURN(const Tensor product,
                   autograd::Sum(products, {1}, /*keepdim=*/true));
  ASSIGN_OR_RETURN(const Tensor bias, autograd::Add(biases[0], biases[1]));
  ASSIGN_OR_RETURN(const Tensor rating, autograd::Add(product, bias));
  return autograd::AddScalar(rating, options_.mean_rating);
}

absl::StatusOr<Tensor> Factorization::Loss(
    const Tensor& predictions, const std::vector<Tensor>& rows,
    const data::SampleBatch& batch) const {
  ASSIGN_OR_RETURN(Tensor loss, nn::MseLoss(predictions, batch.labels));
  for (const Tensor& row : rows) {
    ASSIGN_OR_RETURN(const Tensor squares, autograd::Square(row));
    ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(squares));
    const double samples = static_cast<double>(batch.size());
    ASSIGN_OR_RETURN(const Tensor penalty,
                     autograd::MulScalar(sum, options_.l2 / samples));
    ASSIGN_OR_RETURN(loss, autograd::Add(loss, penalty));
  }
  return loss;
}

}  // namespace hawser::examples::matrix_factorization
