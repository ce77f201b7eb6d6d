#ifndef HAWSER_OPTIM_ADADELTA_H_
#define HAWSER_OPTIM_ADADELTA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of Adadelta (Zeiler, 2012), as in PyTorch:
//
//   g = g + weight_decay * p
//   v = rho * v + (1 - rho) * g^2
//   d = sqrt(a + eps) / sqrt(v + eps) * g
//   a = rho * a + (1 - rho) * d^2
//   p = p - lr * d
//
// Slots: "square_avg" (v), "acc_delta" (a).
struct AdadeltaOptions {
  double lr = 1;            // At least 0.
  double rho = 0.9;         // In [0, 1].
  double eps = 1e-6;        // At least 0.
  double weight_decay = 0;  // At least 0.
  bool maximize = false;    // Ascends instead of descending.
};

RuleSpec Adadelta(const AdadeltaOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdadelta(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_ADADELTA_H_
