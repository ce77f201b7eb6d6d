#include "optim/sparse_adam.h"

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
#define HWY_TARGET_INCLUDE "optim/sparse_adam.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct SparseAdamKernel {
  SparseAdamKernel(const SparseAdamOptions& o, const UpdateSpan& span)
      : sign(o.maximize ? -1 : 1),
        beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest1(static_cast<T>(1 - o.beta1)),
        rest2(static_cast<T>(1 - o.beta2)),
        eps(static_cast<T>(o.eps)),
        step(static_cast<T>(-span.learning_rate *
                            std::sqrt(1 - std::pow(o.beta2, span.step)) /
                            (1 - std::pow(o.beta1, span.step)))) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& m, V& v, V&) const {
    g = hn::Mul(g, hn::Set(d, sign));
    m = hn::MulAdd(hn::Set(d, beta1), m, hn::Mul(hn::Set(d, rest1), g));
    v = hn::MulAdd(hn::Set(d, beta2), v,
                   hn::Mul(hn::Set(d, rest2), hn::Mul(g, g)));
    const V denominator = hn::Add(hn::Sqrt(v), hn::Set(d, eps));
    p = hn::MulAdd(hn::Set(d, step), hn::Div(m, denominator), p);
  }

  T sign, beta1, beta2, rest1, rest2, eps, step;
};

void SparseAdamUpdate(const SparseAdamOptions& options,
                      std::span<const UpdateSpan> spans) {
  UpdateElements<2, SparseAdamKernel>(options, spans);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(SparseAdamUpdate);

using internal::CheckOption;

constexpr internal::OptionField<SparseAdamOptions> kTable[] = {
    {"lr", &SparseAdamOptions::lr},
    {"beta1", &SparseAdamOptions::beta1},
    {"beta2", &SparseAdamOptions::beta2},
    {"eps", &SparseAdamOptions::eps},
    {"maximize", &SparseAdamOptions::maximize},
};

class SparseAdamRule final : public UpdateRule {
 public:
  explicit SparseAdamRule(const SparseAdamOptions& options)
      : UpdateRule(SparseAdam(options), {{"exp_avg", 0}, {"exp_avg_sq", 0}},
                   GradientKind::kRows),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    HWY_DYNAMIC_DISPATCH(SparseAdamUpdate)(options_, spans);
  }

 private:
  const SparseAdamOptions options_;
};

}  // namespace

RuleSpec SparseAdam(const SparseAdamOptions& options) {
  return internal::WriteOptions<SparseAdamOptions>("SparseAdam", options,
                                                   kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSparseAdam(
    const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const SparseAdamOptions o,
                   internal::ReadOptions<SparseAdamOptions>(spec, kTable));
  RETURN_IF_ERROR(
      CheckOption("SparseAdam", "lr", o.lr, {.low_included = false}));
  RETURN_IF_ERROR(CheckOption("SparseAdam", "beta1", o.beta1, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("SparseAdam", "beta2", o.beta2, {.high = 1}));
  RETURN_IF_ERROR(
      CheckOption("SparseAdam", "eps", o.eps, {.low_included = false}));
  return std::make_unique<SparseAdamRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
