#include "optim/sgd.h"

#include <cstddef>
#include <limits>
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
#define HWY_TARGET_INCLUDE "optim/sgd.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct SgdKernel {
  SgdKernel(const SgdOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        step(static_cast<T>(-span.learning_rate)) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V&, V&, V&) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    p = hn::MulAdd(hn::Set(d, step), g, p);
  }

  T decay, sign, step;
};

template <class T>
struct MomentumKernel {
  MomentumKernel(const SgdOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        step(static_cast<T>(-span.learning_rate)),
        momentum(static_cast<T>(o.momentum)),
        keep(static_cast<T>(span.step == 1 ? 0 : o.momentum)),
        take(static_cast<T>(span.step == 1 ? 1 : 1 - o.dampening)),
        nesterov(o.nesterov) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& buffer, V&, V&) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    buffer = hn::MulAdd(hn::Set(d, keep), buffer, hn::Mul(hn::Set(d, take), g));
    const V move =
        nesterov ? hn::MulAdd(hn::Set(d, momentum), buffer, g) : buffer;
    p = hn::MulAdd(hn::Set(d, step), move, p);
  }

  T decay, sign, step, momentum, keep, take;
  bool nesterov;
};

void SgdUpdate(const SgdOptions& options, std::span<const UpdateSpan> spans) {
  if (options.momentum == 0) {
    UpdateElements<0, SgdKernel>(options, spans);
  } else {
    UpdateElements<1, MomentumKernel>(options, spans);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(SgdUpdate);

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
    HWY_DYNAMIC_DISPATCH(SgdUpdate)(options_, spans);
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
#endif  // HWY_ONCE
