#ifndef HAWSER_OPTIM_ADAGRAD_H_
#define HAWSER_OPTIM_ADAGRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of Adagrad (Duchi et al., 2011), as in PyTorch:
//
//   g = g + weight_decay * p
//   s = s + g^2
//   p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
//
// Slot: "sum". ApplyRows works without weight decay.
struct AdagradOptions {
  double lr = 1e-2;                      // At least 0.
  double lr_decay = 0;                   // At least 0.
  double weight_decay = 0;               // At least 0.
  double initial_accumulator_value = 0;  // Initial s; at least 0.
  double eps = 1e-10;                    // At least 0.
  bool maximize = false;                 // Ascends instead of descending.
};

RuleSpec Adagrad(const AdagradOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdagrad(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_ADAGRAD_H_
