#ifndef HAWSER_OPTIM_FTRL_H_
#define HAWSER_OPTIM_FTRL_H_

#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of FTRL-Proximal per coordinate: McMahan et al., "Ad Click
// Prediction: a View from the Trenches", KDD 2013, Algorithm 1. With w the
// parameter and lr the paper's alpha:
//
//   s = (sqrt(n + g^2) - sqrt(n)) / lr
//   z = z + g - s * w
//   n = n + g^2
//   w = |z| <= l1 ? 0 : -(z - sign(z) * l1) / ((beta + sqrt(n)) / lr + l2)
//
// The paper starts from w = 0. For an element with another initial value, the
// first update sets z so that the last line gives this value.
//
// A change of lr or l2 does not change weights: z is converted so that it gives
// the same weight with the new options. Slots: "z", stored for lr = 2^-20 and
// l2 = 0, and "n". ApplyRows works, since elements with gradient 0 do not
// change.
struct FtrlOptions {
  // Required, above 0.
  double lr = std::numeric_limits<double>::quiet_NaN();
  double beta = 1;        // At least 0.
  double l1 = 0;          // The paper's lambda 1; at least 0.
  double l2 = 0;          // The paper's lambda 2; at least 0.
  bool maximize = false;  // Ascends instead of descending.
};

RuleSpec Ftrl(const FtrlOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeFtrl(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_FTRL_H_
