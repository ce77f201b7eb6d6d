#include "optim/row_wise_adagrad.h"

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

constexpr internal::OptionField<RowWiseAdagradOptions> kTable[] = {
    {"lr", &RowWiseAdagradOptions::lr},
    {"initial_accumulator_value",
     &RowWiseAdagradOptions::initial_accumulator_value},
    {"eps", &RowWiseAdagradOptions::eps},
    {"maximize", &RowWiseAdagradOptions::maximize},
};

class RowWiseAdagradRule final : public UpdateRule {
 public:
  explicit RowWiseAdagradRule(const RowWiseAdagradOptions& options)
      : UpdateRule(RowWiseAdagrad(options),
                   {{"sum", options.initial_accumulator_value, true}},
                   GradientKind::kDenseAndRows),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::RowWiseAdagradUpdate(options_, spans);
  }
  bool depends_on_step() const override { return false; }

 private:
  const RowWiseAdagradOptions options_;
};

}  // namespace

RuleSpec RowWiseAdagrad(const RowWiseAdagradOptions& options) {
  return internal::WriteOptions<RowWiseAdagradOptions>("RowWiseAdagrad",
                                                       options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRowWiseAdagrad(
    const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const RowWiseAdagradOptions o,
                   internal::ReadOptions<RowWiseAdagradOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("RowWiseAdagrad", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("RowWiseAdagrad", "initial_accumulator_value",
                              o.initial_accumulator_value, {}));
  RETURN_IF_ERROR(CheckOption("RowWiseAdagrad", "eps", o.eps, {}));
  return std::make_unique<RowWiseAdagradRule>(o);
}

}  // namespace hawser::optim
