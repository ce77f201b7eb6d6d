#include "optim/rprop.h"

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
#define HWY_TARGET_INCLUDE "optim/rprop.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct RpropKernel {
  RpropKernel(const RpropOptions& o, const UpdateSpan& span)
      : sign(o.maximize ? -1 : 1),
        lr(static_cast<T>(span.learning_rate)),
        shrink(static_cast<T>(o.eta_minus)),
        grow(static_cast<T>(o.eta_plus)),
        smallest(static_cast<T>(o.step_size_min)),
        largest(static_cast<T>(o.step_size_max)),
        first(span.step == 1) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& prev, V& size, V&) const {
    const V zero = hn::Zero(d);
    g = hn::Mul(g, hn::Set(d, sign));
    if (first) {
      prev = zero;
      size = hn::Set(d, lr);
    }
    const V agreement = hn::Mul(g, prev);
    const auto turned = hn::Lt(agreement, zero);
    V factor = hn::Set(d, T{1});
    factor = hn::IfThenElse(turned, hn::Set(d, shrink), factor);
    factor = hn::IfThenElse(hn::Gt(agreement, zero), hn::Set(d, grow), factor);
    size = hn::Min(hn::Max(hn::Mul(size, factor), hn::Set(d, smallest)),
                   hn::Set(d, largest));
    prev = hn::IfThenZeroElse(turned, g);
    const V up = hn::IfThenElseZero(hn::Gt(prev, zero), size);
    const V down = hn::IfThenElseZero(hn::Lt(prev, zero), size);
    p = hn::Add(hn::Sub(p, up), down);
  }

  T sign, lr, shrink, grow, smallest, largest;
  bool first;
};

void RpropUpdate(const RpropOptions& options,
                 std::span<const UpdateSpan> spans) {
  UpdateElements<2, RpropKernel>(options, spans);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(RpropUpdate);

using internal::CheckOption;

constexpr internal::OptionField<RpropOptions> kTable[] = {
    {"lr", &RpropOptions::lr},
    {"eta_minus", &RpropOptions::eta_minus},
    {"eta_plus", &RpropOptions::eta_plus},
    {"step_size_min", &RpropOptions::step_size_min},
    {"step_size_max", &RpropOptions::step_size_max},
    {"maximize", &RpropOptions::maximize},
};

class RpropRule final : public UpdateRule {
 public:
  explicit RpropRule(const RpropOptions& options)
      : UpdateRule(Rprop(options), {{"prev", 0}, {"step_size", 0}},
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    HWY_DYNAMIC_DISPATCH(RpropUpdate)(options_, spans);
  }

 private:
  const RpropOptions options_;
};

}  // namespace

RuleSpec Rprop(const RpropOptions& options) {
  return internal::WriteOptions<RpropOptions>("Rprop", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRprop(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const RpropOptions o,
                   internal::ReadOptions<RpropOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("Rprop", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("Rprop", "eta_minus", o.eta_minus,
                              {.high = 1, .low_included = false}));
  RETURN_IF_ERROR(CheckOption("Rprop", "eta_plus", o.eta_plus,
                              {.low = 1, .low_included = false}));
  RETURN_IF_ERROR(CheckOption("Rprop", "step_size_min", o.step_size_min, {}));
  RETURN_IF_ERROR(CheckOption("Rprop", "step_size_max", o.step_size_max,
                              {.low = o.step_size_min}));
  return std::make_unique<RpropRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
