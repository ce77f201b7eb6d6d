#include "optim/rmsprop.h"

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
#define HWY_TARGET_INCLUDE "optim/rmsprop.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct RmsPropKernel {
  RmsPropKernel(const RmsPropOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        alpha(static_cast<T>(o.alpha)),
        rest(static_cast<T>(1 - o.alpha)),
        eps(static_cast<T>(o.eps)),
        momentum(static_cast<T>(o.momentum)),
        step(static_cast<T>(-span.learning_rate)),
        centered(o.centered) {}

  // The slots after v are the mean and the buffer, or only the buffer.
  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& v, V& s1, V& s2) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    const V alphas = hn::Set(d, alpha);
    v = hn::MulAdd(alphas, v, hn::Mul(hn::Set(d, rest), hn::Mul(g, g)));
    V variance = v;
    if (centered) {
      s1 = hn::MulAdd(alphas, s1, hn::Mul(hn::Set(d, rest), g));
      variance = hn::NegMulAdd(s1, s1, v);
    }
    V move = hn::Div(g, hn::Add(hn::Sqrt(variance), hn::Set(d, eps)));
    if (momentum != 0) {
      V& buffer = centered ? s2 : s1;
      buffer = hn::MulAdd(hn::Set(d, momentum), buffer, move);
      move = buffer;
    }
    p = hn::MulAdd(hn::Set(d, step), move, p);
  }

  T decay, sign, alpha, rest, eps, momentum, step;
  bool centered;
};

void RmsPropUpdate(const RmsPropOptions& options,
                   std::span<const UpdateSpan> spans) {
  if (options.centered && options.momentum != 0) {
    UpdateElements<3, RmsPropKernel>(options, spans);
  } else if (options.centered || options.momentum != 0) {
    UpdateElements<2, RmsPropKernel>(options, spans);
  } else {
    UpdateElements<1, RmsPropKernel>(options, spans);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(RmsPropUpdate);

using internal::CheckOption;

constexpr internal::OptionField<RmsPropOptions> kTable[] = {
    {"lr", &RmsPropOptions::lr},
    {"alpha", &RmsPropOptions::alpha},
    {"eps", &RmsPropOptions::eps},
    {"weight_decay", &RmsPropOptions::weight_decay},
    {"momentum", &RmsPropOptions::momentum},
    {"centered", &RmsPropOptions::centered},
    {"maximize", &RmsPropOptions::maximize},
};

std::vector<Slot> RmsPropSlots(const RmsPropOptions& options) {
  std::vector<Slot> slots = {{"square_avg", 0}};
  if (options.centered) slots.push_back({"grad_avg", 0});
  if (options.momentum != 0) slots.push_back({"momentum_buffer", 0});
  return slots;
}

class RmsPropRule final : public UpdateRule {
 public:
  explicit RmsPropRule(const RmsPropOptions& options)
      : UpdateRule(RmsProp(options), RmsPropSlots(options),
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    HWY_DYNAMIC_DISPATCH(RmsPropUpdate)(options_, spans);
  }

 private:
  const RmsPropOptions options_;
};

}  // namespace

RuleSpec RmsProp(const RmsPropOptions& options) {
  return internal::WriteOptions<RmsPropOptions>("RMSprop", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRmsProp(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const RmsPropOptions o,
                   internal::ReadOptions<RmsPropOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("RMSprop", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "alpha", o.alpha, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "eps", o.eps, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "weight_decay", o.weight_decay, {}));
  RETURN_IF_ERROR(CheckOption("RMSprop", "momentum", o.momentum, {}));
  return std::make_unique<RmsPropRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
