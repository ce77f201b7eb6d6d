#ifndef HAWSER_OPTIM_RMSPROP_H_
#define HAWSER_OPTIM_RMSPROP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of RMSprop (Hinton's lecture 6e; centered: Graves, 2013), as in
// PyTorch:
//
//   g = g + weight_decay * p
//   v = alpha * v + (1 - alpha) * g^2
//   centered: m = alpha * m + (1 - alpha) * g, and v - m^2 replaces v below
//   d = g / (sqrt(v) + eps)
//   b = momentum * b + d
//   p = p - lr * b
//
// Slots: "square_avg", then "grad_avg" if centered, then "momentum_buffer" if
// momentum is not 0.
struct RmsPropOptions {
  double lr = 1e-2;         // At least 0.
  double alpha = 0.99;      // At least 0.
  double eps = 1e-8;        // At least 0.
  double weight_decay = 0;  // At least 0.
  double momentum = 0;      // At least 0.
  bool centered = false;
  bool maximize = false;  // Ascends instead of descending.
};

RuleSpec RmsProp(const RmsPropOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRmsProp(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_RMSPROP_H_
