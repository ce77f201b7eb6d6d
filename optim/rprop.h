#ifndef HAWSER_OPTIM_RPROP_H_
#define HAWSER_OPTIM_RPROP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Resilient backpropagation (Riedmiller and Braun, 1993) as in PyTorch. Each
// element has a step size, lr at first, that grows by eta_plus while the
// gradient keeps its sign and shrinks by eta_minus when the sign changes; after
// a change the element rests for one step.
//
// Slots: "prev" (the gradient last used), "step_size".
struct RpropOptions {
  double lr = 1e-2;             // First step size; at least 0.
  double eta_minus = 0.5;       // In (0, 1).
  double eta_plus = 1.2;        // Above 1.
  double step_size_min = 1e-6;  // At least 0.
  double step_size_max = 50;    // At least step_size_min.
  bool maximize = false;        // Climbs instead of descending.
};

RuleSpec Rprop(const RpropOptions& options);

// kInvalidArgument: an option out of its range, or not one of the above.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRprop(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_RPROP_H_
