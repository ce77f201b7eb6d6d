#ifndef HAWSER_OPTIM_FTRL_H_
#define HAWSER_OPTIM_FTRL_H_

#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Follow the regularised leader, per-coordinate proximal form: McMahan et al.,
// "Ad Click Prediction: a View from the Trenches", KDD 2013, Algorithm 1. With
// w the parameter, and lr the paper's alpha:
//
//   s = (sqrt(n + g^2) - sqrt(n)) / lr
//   z = z + g - s * w
//   n = n + g^2
//   w = |z| <= l1 ? 0 : -(z - sign(z) * l1) / ((beta + sqrt(n)) / lr + l2)
//
// The paper starts from w = 0. An element that starts elsewhere has its z set,
// when it is first updated, so that the last line gives its starting value.
//
// A change of lr or l2 moves no weight: z is set to what gives the same weight
// with the new ones. Slots: "z", for lr = 2^-20 and l2 = 0, and "n". Rows can
// be updated: an element whose gradient is 0 stays.
struct FtrlOptions {
  // Required, above 0.
  double lr = std::numeric_limits<double>::quiet_NaN();
  double beta = 1;        // At least 0.
  double l1 = 0;          // The paper's lambda 1; at least 0.
  double l2 = 0;          // The paper's lambda 2; at least 0.
  bool maximize = false;  // Climbs instead of descending.
};

RuleSpec Ftrl(const FtrlOptions& options);

// kInvalidArgument: an option out of its range, or not one of the above.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeFtrl(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_FTRL_H_
