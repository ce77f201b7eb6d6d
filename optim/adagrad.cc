#include "optim/adagrad.h"

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

constexpr internal::OptionField<AdagradOptions> kTable[] = {
    {"lr", &AdagradOptions::lr},
    {"lr_decay", &AdagradOptions::lr_decay},
    {"weight_decay", &AdagradOptions::weight_decay},
    {"initial_accumulator_value", &AdagradOptions::initial_accumulator_value},
    {"eps", &AdagradOptions::eps},
    {"maximize", &AdagradOptions::maximize},
};

class AdagradRule final : public UpdateRule {
 public:
  explicit AdagradRule(const AdagradOptions& options)
      : UpdateRule(Adagrad(options),
                   {{"sum", options.initial_accumulator_value}},
                   options.weight_decay == 0 ? GradientKind::kDenseAndRows
                                             : GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::AdagradUpdate(options_, spans);
  }
  bool depends_on_step() const override { return options_.lr_decay != 0; }

 private:
  const AdagradOptions options_;
};

}  // namespace

RuleSpec Adagrad(const AdagradOptions& options) {
  return internal::WriteOptions<AdagradOptions>("Adagrad", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdagrad(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const AdagradOptions o,
                   internal::ReadOptions<AdagradOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("Adagrad", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "lr_decay", o.lr_decay, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "weight_decay", o.weight_decay, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "initial_accumulator_value",
                              o.initial_accumulator_value, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "eps", o.eps, {}));
  return std::make_unique<AdagradRule>(o);
}

}  // namespace hawser::optim
