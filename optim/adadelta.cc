#include "optim/adadelta.h"

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
#define HWY_TARGET_INCLUDE "optim/adadelta.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct AdadeltaKernel {
  AdadeltaKernel(const AdadeltaOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        rho(static_cast<T>(o.rho)),
        rest(static_cast<T>(1 - o.rho)),
        eps(static_cast<T>(o.eps)),
        step(static_cast<T>(-span.learning_rate)) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& v, V& a, V&) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    v = hn::MulAdd(hn::Set(d, rho), v,
                   hn::Mul(hn::Set(d, rest), hn::Mul(g, g)));
    const V deviation = hn::Sqrt(hn::Add(v, hn::Set(d, eps)));
    const V scale = hn::Div(hn::Sqrt(hn::Add(a, hn::Set(d, eps))), deviation);
    const V delta = hn::Mul(scale, g);
    a = hn::MulAdd(hn::Set(d, rho), a,
                   hn::Mul(hn::Set(d, rest), hn::Mul(delta, delta)));
    p = hn::MulAdd(hn::Set(d, step), delta, p);
  }

  T decay, sign, rho, rest, eps, step;
};

void AdadeltaUpdate(const AdadeltaOptions& options,
                    std::span<const UpdateSpan> spans) {
  UpdateElements<2, AdadeltaKernel>(options, spans);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(AdadeltaUpdate);

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
    HWY_DYNAMIC_DISPATCH(AdadeltaUpdate)(options_, spans);
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
#endif  // HWY_ONCE
