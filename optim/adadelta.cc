#include "optim/adadelta.h"

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

constexpr internal::OptionField<AdadeltaOptions> kTable[] = {
    {"lr", &AdadeltaOptions::lr},
    {"rho", &AdadeltaOptions::rho},
    {"eps", &AdadeltaOptions::eps},
    {"weight_decay", &AdadeltaOptions::weight_decay},
    {"maximize", &AdadeltaOptions::maximize},
};

class AdadeltaRule final : public UpdateRule {
 public:
  explicit AdadeltaRule(const AdadeltaOptions& options)
      : UpdateRule(Adadelta(options), {{"square_avg", 0}, {"acc_delta", 0}},
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::AdadeltaUpdate(options_, spans);
  }

 private:
  const AdadeltaOptions options_;
};

}  // namespace

RuleSpec Adadelta(const AdadeltaOptions& options) {
  return internal::WriteOptions<AdadeltaOptions>("Adadelta", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdadelta(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const AdadeltaOptions o,
                   internal::ReadOptions<AdadeltaOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("Adadelta", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("Adadelta", "rho", o.rho,
                              {.high = 1, .high_included = true}));
  RETURN_IF_ERROR(CheckOption("Adadelta", "eps", o.eps, {}));
  RETURN_IF_ERROR(CheckOption("Adadelta", "weight_decay", o.weight_decay, {}));
  return std::make_unique<AdadeltaRule>(o);
}

}  // namespace hawser::optim
