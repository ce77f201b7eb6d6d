#include "optim/rmsprop.h"

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

constexpr internal::OptionField<RmsPropOptions> kTable[] = {
    {"lr", &RmsPropOptions::lr},
    {"alpha", &RmsPropOptions::alpha},
    {"eps", &RmsPropOptions::eps},
    {"weight_decay", &RmsPropOptions::weight_decay},
    {"momentum", &RmsPropOptions::momentum},
    {"centered", &RmsPropOptions::centered},
    {"maximize", &RmsPropOptions::maximize},
};

std::vector<Slot> RmsPropSlots(const RmsPropOptions& options) {
  std::vector<Slot> slots = {{"square_avg", 0}};
  if (options.centered) slots.push_back({"grad_avg", 0});
  if (options.momentum != 0) slots.push_back({"momentum_buffer", 0});
  return slots;
}

class RmsPropRule final : public UpdateRule {
 public:
  explicit RmsPropRule(const RmsPropOptions& options)
      : UpdateRule(RmsProp(options), RmsPropSlots(options),
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::RmsPropUpdate(options_, spans);
  }

 private:
  const RmsPropOptions options_;
};

}  // namespace

RuleSpec RmsProp(const RmsPropOptions& options) {
  return internal::WriteOptions<RmsPropOptions>("RMSprop", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRmsProp(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const RmsPropOptions o,
                   internal::ReadOptions<RmsPropOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("RMSprop", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "alpha", o.alpha, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "eps", o.eps, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "weight_decay", o.weight_decay, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "momentum", o.momentum, {}));
  return std::make_unique<RmsPropRule>(o);
}

}  // namespace hawser::optim
