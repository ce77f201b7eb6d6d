#include "optim/adamax.h"

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "optim/internal/option_table.h"
#include "optim/internal/update_targets.h"
#include "optim/update_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/adamax.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct AdamaxKernel {
  AdamaxKernel(const AdamaxOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest1(static_cast<T>(1 - o.beta1)),
        eps(static_cast<T>(o.eps)),
        step(static_cast<T>(-span.learning_rate /
                            (1 - std::pow(o.beta1, span.step)))) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& m, V& u, V&) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    m = hn::MulAdd(hn::Set(d, beta1), m, hn::Mul(hn::Set(d, rest1), g));
    u = hn::Max(hn::Mul(hn::Set(d, beta2), u),
                hn::Add(hn::Abs(g), hn::Set(d, eps)));
    p = hn::MulAdd(hn::Set(d, step), hn::Div(m, u), p);
  }

  T decay, sign, beta1, beta2, rest1, eps, step;
};

void AdamaxUpdate(const AdamaxOptions& options,
                  std::span<const UpdateSpan> spans) {
  UpdateElements<2, AdamaxKernel>(options, spans);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(AdamaxUpdate);

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
    HWY_DYNAMIC_DISPATCH(AdamaxUpdate)(options_, spans);
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
#endif  // HWY_ONCE
