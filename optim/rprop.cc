#include "optim/rprop.h"

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "optim/internal/option_table.h"
#include "optim/kernels/update_kernels.h"
#include "optim/update_rule.h"

namespace hawser::optim {
namespace {

using internal::CheckOption;

constexpr internal::OptionField<RpropOptions> kTable[] = {
    {"lr", &RpropOptions::lr},
    {"eta_minus", &RpropOptions::eta_minus},
    {"eta_plus", &RpropOptions::eta_plus},
    {"step_size_min", &RpropOptions::step_size_min},
    {"step_size_max", &RpropOptions::step_size_max},
    {"maximize", &RpropOptions::maximize},
};

class RpropRule final : public UpdateRule {
 public:
  explicit RpropRule(const RpropOptions& options)
      : UpdateRule(Rprop(options), {{"prev", 0}, {"step_size", 0}},
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::RpropUpdate(options_, spans);
  }

 private:
  const RpropOptions options_;
};

}  // namespace

RuleSpec Rprop(const RpropOptions& options) {
  return internal::WriteOptions<RpropOptions>("Rprop", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRprop(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const RpropOptions o,
                   internal::ReadOptions<RpropOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("Rprop", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("Rprop", "eta_minus", o.eta_minus,
                              {.high = 1, .low_included = false}));
  RETURN_IF_ERROR(CheckOption("Rprop", "eta_plus", o.eta_plus,
                              {.low = 1, .low_included = false}));
  RETURN_IF_ERROR(CheckOption("Rprop", "step_size_min", o.step_size_min, {}));
  RETURN_IF_ERROR(CheckOption("Rprop", "step_size_max", o.step_size_max,
                              {.low = o.step_size_min}));
  return std::make_unique<RpropRule>(o);
}

}  // namespace hawser::optim
