#ifndef HAWSER_OPTIM_ADAM_H_
#define HAWSER_OPTIM_ADAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of Adam (Kingma and Ba, 2015), as in PyTorch:
//
//   g = g + weight_decay * p
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g^2
//   p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//
// With amsgrad (Reddi et al., 2018), the last line uses the largest v so far.
// Slots: "exp_avg", "exp_avg_sq", "max_exp_avg_sq".
struct AdamOptions {
  double lr = 1e-3;         // At least 0.
  double beta1 = 0.9;       // In [0, 1).
  double beta2 = 0.999;     // In [0, 1).
  double eps = 1e-8;        // At least 0.
  double weight_decay = 0;  // At least 0.
  bool amsgrad = false;
  bool maximize = false;  // Ascends instead of descending.
};

RuleSpec Adam(const AdamOptions& options);

// Options of Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as
// in PyTorch: first p = p * (1 - lr * weight_decay), then Adam's step without
// weight decay. The slots are those of Adam.
struct AdamWOptions {
  double lr = 1e-3;            // At least 0.
  double beta1 = 0.9;          // In [0, 1).
  double beta2 = 0.999;        // In [0, 1).
  double eps = 1e-8;           // At least 0.
  double weight_decay = 1e-2;  // At least 0.
  bool amsgrad = false;
  bool maximize = false;  // Ascends instead of descending.
};

RuleSpec AdamW(const AdamWOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdam(const RuleSpec& spec);
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdamW(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_ADAM_H_
