#ifndef HAWSER_OPTIM_SGD_H_
#define HAWSER_OPTIM_SGD_H_

#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of stochastic gradient descent, with momentum as in PyTorch:
//
//   g = g + weight_decay * p
//   b = g at the first step, then momentum * b + (1 - dampening) * g
//   p = p - lr * (nesterov ? g + momentum * b : b)
//
// Slot: "momentum_buffer", if momentum is not 0. ApplyRows works without
// momentum and weight decay.
struct SgdOptions {
  // Required, at least 0.
  double lr = std::numeric_limits<double>::quiet_NaN();
  double momentum = 0;  // At least 0.
  double dampening = 0;
  double weight_decay = 0;  // At least 0.
  bool nesterov = false;    // Requires momentum, and dampening 0.
  bool maximize = false;    // Ascends instead of descending.
};

RuleSpec Sgd(const SgdOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSgd(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_SGD_H_
