#ifndef HAWSER_OPTIM_LAMB_H_
#define HAWSER_OPTIM_LAMB_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of LAMB: You et al., "Large Batch Optimization for Deep Learning:
// Training BERT in 76 minutes", ICLR 2020, Algorithm 2, with the identity as
// phi:
//
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g^2
//   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p
//   p = p - lr * |p| / |r| * r
//
// Norms are over the whole parameter, summed in f64. If one of them is 0 the
// ratio is 1. Slots: "exp_avg", "exp_avg_sq".
struct LambOptions {
  double lr = 1e-3;         // At least 0.
  double beta1 = 0.9;       // In [0, 1).
  double beta2 = 0.999;     // In [0, 1).
  double eps = 1e-6;        // At least 0.
  double weight_decay = 0;  // At least 0.
  bool maximize = false;    // Ascends instead of descending.
};

RuleSpec Lamb(const LambOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLamb(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_LAMB_H_
