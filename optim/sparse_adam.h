#ifndef HAWSER_OPTIM_SPARSE_ADAM_H_
#define HAWSER_OPTIM_SPARSE_ADAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of Adam for the rows of an embedding table that a batch uses, as in
// PyTorch's SparseAdam. Moments of other rows do not decay. With t, the number
// of updates of the whole table:
//
//   p = p - lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)
//
// Gradients of the whole parameter are rejected. Slots: "exp_avg",
// "exp_avg_sq".
struct SparseAdamOptions {
  double lr = 1e-3;       // Above 0.
  double beta1 = 0.9;     // In [0, 1).
  double beta2 = 0.999;   // In [0, 1).
  double eps = 1e-8;      // Above 0.
  bool maximize = false;  // Ascends instead of descending.
};

RuleSpec SparseAdam(const SparseAdamOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSparseAdam(
    const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_SPARSE_ADAM_H_
