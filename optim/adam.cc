#include "optim/adam.h"

#include <cmath>
#include <cstddef>
#include <memory>
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
// These must come after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct AdamKernel {
  AdamKernel(const AdamOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
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
    m = hn::MulAdd(hn::Set(d, beta1), m, hn::Mul(hn::Set(d, rest1), g));
    v = hn::MulAdd(hn::Set(d, beta2), v,
                   hn::Mul(hn::Set(d, rest2), hn::Mul(g, g)));
    if (amsgrad) largest = hn::Max(largest, v);
    const V second = hn::Div(hn::Sqrt(amsgrad ? largest : v), hn::Set(d, root));
    const V denominator = hn::Add(second, hn::Set(d, eps));
    p = hn::MulAdd(hn::Set(d, step), hn::Div(m, denominator), p);
  }

  T decay, sign, beta1, beta2, rest1, rest2, root, eps, step;
  bool amsgrad;
};

void AdamUpdate(const AdamOptions& options, const UpdateSpan& span) {
  if (options.amsgrad) {
    UpdateElements<3, AdamKernel>(options, span);
  } else {
    UpdateElements<2, AdamKernel>(options, span);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(AdamUpdate);

using internal::CheckOption;

constexpr internal::OptionField<AdamOptions> kTable[] = {
    {"lr", &AdamOptions::lr},
    {"beta1", &AdamOptions::beta1},
    {"beta2", &AdamOptions::beta2},
    {"eps", &AdamOptions::eps},
    {"weight_decay", &AdamOptions::weight_decay},
    {"amsgrad", &AdamOptions::amsgrad},
    {"maximize", &AdamOptions::maximize},
};

class AdamRule final : public UpdateRule {
 public:
  explicit AdamRule(const AdamOptions& options)
      : UpdateRule(Adam(options),
                   options.amsgrad
                       ? std::vector<Slot>{{"exp_avg", 0},
                                           {"exp_avg_sq", 0},
                                           {"max_exp_avg_sq", 0}}
                       : std::vector<Slot>{{"exp_avg", 0}, {"exp_avg_sq", 0}},
                   GradientKind::kDense),
        options_(options) {}

  void Update(const UpdateSpan& span) const override {
    HWY_DYNAMIC_DISPATCH(AdamUpdate)(options_, span);
  }

 private:
  const AdamOptions options_;
};

}  // namespace

RuleSpec Adam(const AdamOptions& options) {
  return internal::WriteOptions<AdamOptions>("Adam", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdam(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const AdamOptions o,
                   internal::ReadOptions<AdamOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("Adam", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("Adam", "beta1", o.beta1, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("Adam", "beta2", o.beta2, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("Adam", "eps", o.eps, {}));
  RETURN_IF_ERROR(CheckOption("Adam", "weight_decay", o.weight_decay, {}));
  return std::make_unique<AdamRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
