#ifndef HAWSER_OPTIM_ROW_WISE_ADAGRAD_H_
#define HAWSER_OPTIM_ROW_WISE_ADAGRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of Adagrad with one sum per row of an embedding table, as in FBGEMM's
// exact row-wise Adagrad. With n, the elements of the row:
//
//   s = s + sum(g^2) / n
//   p = p - lr / (sqrt(s) + eps) * g
//
// The state takes n times less memory than Adagrad's. Slot: "sum", one number
// per row. A whole parameter is updated row by row.
struct RowWiseAdagradOptions {
  double lr = 1e-2;                      // At least 0.
  double initial_accumulator_value = 0;  // Initial s; at least 0.
  double eps = 1e-10;                    // At least 0.
  bool maximize = false;                 // Ascends instead of descending.
};

RuleSpec RowWiseAdagrad(const RowWiseAdagradOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRowWiseAdagrad(
    const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_ROW_WISE_ADAGRAD_H_
