#include "optim/lamb.h"

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

constexpr internal::OptionField<LambOptions> kTable[] = {
    {"lr", &LambOptions::lr},
    {"beta1", &LambOptions::beta1},
    {"beta2", &LambOptions::beta2},
    {"eps", &LambOptions::eps},
    {"weight_decay", &LambOptions::weight_decay},
    {"maximize", &LambOptions::maximize},
};

class LambRule final : public UpdateRule {
 public:
  explicit LambRule(const LambOptions& options)
      : UpdateRule(Lamb(options), {{"exp_avg", 0}, {"exp_avg_sq", 0}},
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::LambUpdate(options_, spans);
  }
  bool is_elementwise() const override { return false; }

 private:
  const LambOptions options_;
};

}  // namespace

RuleSpec Lamb(const LambOptions& options) {
  return internal::WriteOptions<LambOptions>("LAMB", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLamb(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const LambOptions o,
                   internal::ReadOptions<LambOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("LAMB", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("LAMB", "beta1", o.beta1, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("LAMB", "beta2", o.beta2, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("LAMB", "eps", o.eps, {}));
  RETURN_IF_ERROR(CheckOption("LAMB", "weight_decay", o.weight_decay, {}));
  return std::make_unique<LambRule>(o);
}

}  // namespace hawser::optim
