#include "optim/adam.h"

#include <cmath>
#include <cstddef>
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
#include "optim/internal/update_targets.h"
#include "optim/update_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/adam.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

#ifndef HAWSER_OPTIM_ADAM_VARIANT_
#define HAWSER_OPTIM_ADAM_VARIANT_
namespace hawser::optim {
namespace {

// Adam, or AdamW if the weight decay is decoupled from the gradient.
struct AdamVariant {
  AdamOptions options;
  bool decoupled;
};

}  // namespace
}  // namespace hawser::optim
#endif  // HAWSER_OPTIM_ADAM_VARIANT_

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct AdamKernel {
  AdamKernel(const AdamVariant& variant, const UpdateSpan& span)
      : AdamKernel(variant.options, variant.decoupled, span) {}
  AdamKernel(const AdamOptions& o, bool decoupled, const UpdateSpan& span)
      : shrink(static_cast<T>(
            decoupled ? 1 - span.learning_rate * o.weight_decay : 1)),
        decay(static_cast<T>(decoupled ? 0 : o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest1(static_cast<T>(1 - o.beta1)),
        rest2(static_cast<T>(1 - o.beta2)),
        root(static_cast<T>(std::sqrt(1 - std::pow(o.beta2, span.step)))),
        eps(static_cast<T>(o.eps)),
        step(static_cast<T>(-span.learning_rate /
                            (1 - std::pow(o.beta1, span.step)))),
        amsgrad(o.amsgrad) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& m, V& v, V& largest) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    if (shrink != 1) p = hn::Mul(p, hn::Set(d, shrink));
    m = hn::MulAdd(hn::Set(d, beta1), m, hn::Mul(hn::Set(d, rest1), g));
    v = hn::MulAdd(hn::Set(d, beta2), v,
                   hn::Mul(hn::Set(d, rest2), hn::Mul(g, g)));
    if (amsgrad) largest = hn::Max(largest, v);
    const V second = hn::Div(hn::Sqrt(amsgrad ? largest : v), hn::Set(d, root));
    const V denominator = hn::Add(second, hn::Set(d, eps));
    p = hn::MulAdd(hn::Set(d, step), hn::Div(m, denominator), p);
  }

  T shrink, decay, sign, beta1, beta2, rest1, rest2, root, eps, step;
  bool amsgrad;
};

void AdamUpdate(const AdamVariant& variant, std::span<const UpdateSpan> spans) {
  if (variant.options.amsgrad) {
    UpdateElements<3, AdamKernel>(variant, spans);
  } else {
    UpdateElements<2, AdamKernel>(variant, spans);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(AdamUpdate);

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
  AdamRule(RuleSpec spec, const AdamVariant& variant)
      : UpdateRule(std::move(spec),
                   variant.options.amsgrad
                       ? std::vector<Slot>{{"exp_avg", 0},
                                           {"exp_avg_sq", 0},
                                           {"max_exp_avg_sq", 0}}
                       : std::vector<Slot>{{"exp_avg", 0}, {"exp_avg_sq", 0}},
                   GradientKind::kDense),
        variant_(variant) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    HWY_DYNAMIC_DISPATCH(AdamUpdate)(variant_, spans);
  }

 private:
  const AdamVariant variant_;
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
      AdamVariant{{o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad,
                   o.maximize},
                  kDecoupled});
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
#endif  // HWY_ONCE
