#include "optim/adam.h"

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "optim/internal/option_table.h"
#include "optim/kernels/update_kernels.h"
#include "optim/update_rule.h"

namespace hawser::optim {
namespace {

template <class Options>
constexpr internal::OptionField<Options> kTable[] = {
    {"lr", &Options::lr},
    {"beta1", &Options::beta1},
    {"beta2", &Options::beta2},
    {"eps", &Options::eps},
    {"weight_decay", &Options::weight_decay},
    {"amsgrad", &Options::amsgrad},
    {"maximize", &Options::maximize},
};

class AdamRule final : public UpdateRule {
 public:
  AdamRule(RuleSpec spec, const AdamOptions& options, bool decoupled)
      : UpdateRule(std::move(spec),
                   options.amsgrad
                       ? std::vector<Slot>{{"exp_avg", 0},
                                           {"exp_avg_sq", 0},
                                           {"max_exp_avg_sq", 0}}
                       : std::vector<Slot>{{"exp_avg", 0}, {"exp_avg_sq", 0}},
                   GradientKind::kDense),
        options_(options),
        decoupled_(decoupled) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::AdamUpdate(options_, decoupled_, spans);
  }

 private:
  const AdamOptions options_;
  // AdamW: the weight decay is not part of the gradient.
  const bool decoupled_;
};

template <class Options>
absl::StatusOr<std::unique_ptr<UpdateRule>> Make(const RuleSpec& spec) {
  constexpr bool kDecoupled = std::is_same_v<Options, AdamWOptions>;
  constexpr std::string_view kName = kDecoupled ? "AdamW" : "Adam";
  ASSIGN_OR_RETURN(const Options o,
                   internal::ReadOptions<Options>(spec, kTable<Options>));
  RETURN_IF_ERROR(internal::CheckOption(kName, "lr", o.lr, {}));
  RETURN_IF_ERROR(internal::CheckOption(kName, "beta1", o.beta1, {.high = 1}));
  RETURN_IF_ERROR(internal::CheckOption(kName, "beta2", o.beta2, {.high = 1}));
  RETURN_IF_ERROR(internal::CheckOption(kName, "eps", o.eps, {}));
  RETURN_IF_ERROR(
      internal::CheckOption(kName, "weight_decay", o.weight_decay, {}));
  return std::make_unique<AdamRule>(
      internal::WriteOptions<Options>(kName, o, kTable<Options>),
      AdamOptions{o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad,
                  o.maximize},
      kDecoupled);
}

}  // namespace

RuleSpec Adam(const AdamOptions& options) {
  return internal::WriteOptions<AdamOptions>("Adam", options,
                                             kTable<AdamOptions>);
}

RuleSpec AdamW(const AdamWOptions& options) {
  return internal::WriteOptions<AdamWOptions>("AdamW", options,
                                              kTable<AdamWOptions>);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdam(const RuleSpec& spec) {
  return Make<AdamOptions>(spec);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdamW(const RuleSpec& spec) {
  return Make<AdamWOptions>(spec);
}

}  // namespace hawser::optim
