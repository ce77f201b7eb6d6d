#include "optim/adagrad.h"

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
#define HWY_TARGET_INCLUDE "optim/adagrad.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct AdagradKernel {
  AdagradKernel(const AdagradOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        eps(static_cast<T>(o.eps)),
        step(static_cast<T>(
            -span.learning_rate /
            (1 + static_cast<double>(span.step - 1) * o.lr_decay))) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& sum, V&, V&) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    sum = hn::MulAdd(g, g, sum);
    const V denominator = hn::Add(hn::Sqrt(sum), hn::Set(d, eps));
    p = hn::MulAdd(hn::Set(d, step), hn::Div(g, denominator), p);
  }

  T decay, sign, eps, step;
};

void AdagradUpdate(const AdagradOptions& options,
                   std::span<const UpdateSpan> spans) {
  UpdateElements<1, AdagradKernel>(options, spans);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(AdagradUpdate);

using internal::CheckOption;

constexpr internal::OptionField<AdagradOptions> kTable[] = {
    {"lr", &AdagradOptions::lr},
    {"lr_decay", &AdagradOptions::lr_decay},
    {"weight_decay", &AdagradOptions::weight_decay},
    {"initial_accumulator_value", &AdagradOptions::initial_accumulator_value},
    {"eps", &AdagradOptions::eps},
    {"maximize", &AdagradOptions::maximize},
};

class AdagradRule final : public UpdateRule {
 public:
  explicit AdagradRule(const AdagradOptions& options)
      : UpdateRule(Adagrad(options),
                   {{"sum", options.initial_accumulator_value}},
                   options.weight_decay == 0 ? GradientKind::kDenseAndRows
                                             : GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    HWY_DYNAMIC_DISPATCH(AdagradUpdate)(options_, spans);
  }
  bool depends_on_step() const override { return options_.lr_decay != 0; }

 private:
  const AdagradOptions options_;
};

}  // namespace

RuleSpec Adagrad(const AdagradOptions& options) {
  return internal::WriteOptions<AdagradOptions>("Adagrad", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdagrad(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const AdagradOptions o,
                   internal::ReadOptions<AdagradOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("Adagrad", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "lr_decay", o.lr_decay, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "weight_decay", o.weight_decay, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "initial_accumulator_value",
                              o.initial_accumulator_value, {}));
  RETURN_IF_ERROR(CheckOption("Adagrad", "eps", o.eps, {}));
  return std::make_unique<AdagradRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
