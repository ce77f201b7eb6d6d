#include "optim/sparse_adam.h"

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

constexpr internal::OptionField<SparseAdamOptions> kTable[] = {
    {"lr", &SparseAdamOptions::lr},
    {"beta1", &SparseAdamOptions::beta1},
    {"beta2", &SparseAdamOptions::beta2},
    {"eps", &SparseAdamOptions::eps},
    {"maximize", &SparseAdamOptions::maximize},
};

class SparseAdamRule final : public UpdateRule {
 public:
  explicit SparseAdamRule(const SparseAdamOptions& options)
      : UpdateRule(SparseAdam(options), {{"exp_avg", 0}, {"exp_avg_sq", 0}},
                   GradientKind::kRows),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::SparseAdamUpdate(options_, spans);
  }

 private:
  const SparseAdamOptions options_;
};

}  // namespace

RuleSpec SparseAdam(const SparseAdamOptions& options) {
  return internal::WriteOptions<SparseAdamOptions>("SparseAdam", options,
                                                   kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSparseAdam(
    const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const SparseAdamOptions o,
                   internal::ReadOptions<SparseAdamOptions>(spec, kTable));
  RETURN_IF_ERROR(
      CheckOption("SparseAdam", "lr", o.lr, {.low_included = false}));
  RETURN_IF_ERROR(CheckOption("SparseAdam", "beta1", o.beta1, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("SparseAdam", "beta2", o.beta2, {.high = 1}));
  RETURN_IF_ERROR(
      CheckOption("SparseAdam", "eps", o.eps, {.low_included = false}));
  return std::make_unique<SparseAdamRule>(o);
}

}  // namespace hawser::optim
