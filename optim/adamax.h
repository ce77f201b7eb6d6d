#ifndef HAWSER_OPTIM_ADAMAX_H_
#define HAWSER_OPTIM_ADAMAX_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of Adamax, Adam with the infinity norm (Kingma and Ba, 2015), as in
// PyTorch:
//
//   g = g + weight_decay * p
//   m = beta1 * m + (1 - beta1) * g
//   u = max(beta2 * u, |g| + eps)
//   p = p - lr / (1 - beta1^t) * m / u
//
// Slots: "exp_avg", "exp_inf".
struct AdamaxOptions {
  double lr = 2e-3;         // At least 0.
  double beta1 = 0.9;       // In [0, 1).
  double beta2 = 0.999;     // In [0, 1).
  double eps = 1e-8;        // At least 0.
  double weight_decay = 0;  // At least 0.
  bool maximize = false;    // Ascends instead of descending.
};

RuleSpec Adamax(const AdamaxOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdamax(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_ADAMAX_H_
