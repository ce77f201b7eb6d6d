#include "optim/adamax.h"

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

constexpr internal::OptionField<AdamaxOptions> kTable[] = {
    {"lr", &AdamaxOptions::lr},
    {"beta1", &AdamaxOptions::beta1},
    {"beta2", &AdamaxOptions::beta2},
    {"eps", &AdamaxOptions::eps},
    {"weight_decay", &AdamaxOptions::weight_decay},
    {"maximize", &AdamaxOptions::maximize},
};

class AdamaxRule final : public UpdateRule {
 public:
  explicit AdamaxRule(const AdamaxOptions& options)
      : UpdateRule(Adamax(options), {{"exp_avg", 0}, {"exp_inf", 0}},
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::AdamaxUpdate(options_, spans);
  }

 private:
  const AdamaxOptions options_;
};

}  // namespace

RuleSpec Adamax(const AdamaxOptions& options) {
  return internal::WriteOptions<AdamaxOptions>("Adamax", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdamax(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const AdamaxOptions o,
                   internal::ReadOptions<AdamaxOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("Adamax", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("Adamax", "beta1", o.beta1, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("Adamax", "beta2", o.beta2, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("Adamax", "eps", o.eps, {}));
  RETURN_IF_ERROR(CheckOption("Adamax", "weight_decay", o.weight_decay, {}));
  return std::make_unique<AdamaxRule>(o);
}

}  // namespace hawser::optim
