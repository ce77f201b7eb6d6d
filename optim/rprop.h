#ifndef HAWSER_OPTIM_RPROP_H_
#define HAWSER_OPTIM_RPROP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Options of resilient backpropagation (Riedmiller and Braun, 1993), as in
// PyTorch. Each element has a step size, initially lr. It is multiplied by
// eta_plus if the gradient keeps its sign and by eta_minus if the sign changes.
// In a step with a change of sign the element is not updated.
//
// Slots: "prev" (the gradient last used), "step_size".
struct RpropOptions {
  double lr = 1e-2;             // Initial step size; at least 0.
  double eta_minus = 0.5;       // In (0, 1).
  double eta_plus = 1.2;        // Above 1.
  double step_size_min = 1e-6;  // At least 0.
  double step_size_max = 50;    // At least step_size_min.
  bool maximize = false;        // Ascends instead of descending.
};

RuleSpec Rprop(const RpropOptions& options);

// kInvalidArgument: an option is unknown or out of range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRprop(const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_RPROP_H_
