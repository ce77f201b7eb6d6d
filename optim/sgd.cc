#include "optim/sgd.h"

#include <limits>
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

constexpr internal::OptionField<SgdOptions> kTable[] = {
    {"lr", &SgdOptions::lr},
    {"momentum", &SgdOptions::momentum},
    {"dampening", &SgdOptions::dampening},
    {"weight_decay", &SgdOptions::weight_decay},
    {"nesterov", &SgdOptions::nesterov},
    {"maximize", &SgdOptions::maximize},
};

class SgdRule final : public UpdateRule {
 public:
  explicit SgdRule(const SgdOptions& options)
      : UpdateRule(Sgd(options),
                   options.momentum == 0
                       ? std::vector<Slot>{}
                       : std::vector<Slot>{{"momentum_buffer", 0}},
                   options.momentum == 0 && options.weight_decay == 0
                       ? GradientKind::kDenseAndRows
                       : GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::SgdUpdate(options_, spans);
  }
  bool depends_on_step() const override { return options_.momentum != 0; }

 private:
  const SgdOptions options_;
};

}  // namespace

RuleSpec Sgd(const SgdOptions& options) {
  return internal::WriteOptions<SgdOptions>("SGD", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSgd(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const SgdOptions o,
                   internal::ReadOptions<SgdOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("SGD", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("SGD", "momentum", o.momentum, {}));
  RETURN_IF_ERROR(
      CheckOption("SGD", "dampening", o.dampening,
                  {.low = -std::numeric_limits<double>::infinity()}));
  RETURN_IF_ERROR(CheckOption("SGD", "weight_decay", o.weight_decay, {}));

  if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) {
    return absl::InvalidArgumentError(
        "SGD: nesterov requires momentum above 0 and dampening 0");
  }
  return std::make_unique<SgdRule>(o);
}

}  // namespace hawser::optim
