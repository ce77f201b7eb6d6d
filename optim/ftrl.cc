#include "optim/ftrl.h"

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
#define HWY_TARGET_INCLUDE "optim/ftrl.cc"
#include "hwy/foreach_target.h"
// These must come after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct FtrlKernel {
  FtrlKernel(const FtrlOptions& o, const UpdateSpan& span)
      : sign(o.maximize ? -1 : 1),
        inverse_lr(static_cast<T>(1 / span.learning_rate)),
        beta(static_cast<T>(o.beta)),
        l1(static_cast<T>(o.l1)),
        l2(static_cast<T>(o.l2)) {}

  template <class D, class V>
  HWY_INLINE V Curvature(D d, V root_n) const {
    return hn::MulAdd(hn::Add(hn::Set(d, beta), root_n), hn::Set(d, inverse_lr),
                      hn::Set(d, l2));
  }

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& w, V g, V& z, V& n, V&) const {
    const V zero = hn::Zero(d);
    const V l1s = hn::Set(d, l1);
    g = hn::Mul(g, hn::Set(d, sign));
    const V old_root = hn::Sqrt(n);
    // An element without history: the z whose closed form is its value.
    const auto fresh =
        hn::And(hn::And(hn::Eq(n, zero), hn::Eq(z, zero)), hn::Ne(w, zero));
    const V start = hn::Neg(
        hn::CopySign(hn::MulAdd(hn::Abs(w), Curvature(d, old_root), l1s), w));
    z = hn::IfThenElse(fresh, start, z);

    n = hn::MulAdd(g, g, n);
    const V root = hn::Sqrt(n);
    const V sigma = hn::Mul(hn::Sub(root, old_root), hn::Set(d, inverse_lr));
    z = hn::NegMulAdd(sigma, w, hn::Add(z, g));
    const V excess = hn::Sub(hn::Abs(z), l1s);
    const V moved =
        hn::Neg(hn::CopySign(hn::Div(excess, Curvature(d, root)), z));
    w = hn::IfThenElseZero(hn::Gt(excess, zero), moved);
  }

  T sign, inverse_lr, beta, l1, l2;
};

void FtrlUpdate(const FtrlOptions& options, const UpdateSpan& span) {
  UpdateElements<2, FtrlKernel>(options, span);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(FtrlUpdate);

using internal::CheckOption;

constexpr internal::OptionField<FtrlOptions> kTable[] = {
    {"lr", &FtrlOptions::lr},
    {"beta", &FtrlOptions::beta},
    {"l1", &FtrlOptions::l1},
    {"l2", &FtrlOptions::l2},
    {"maximize", &FtrlOptions::maximize},
};

class FtrlRule final : public UpdateRule {
 public:
  explicit FtrlRule(const FtrlOptions& options)
      : UpdateRule(Ftrl(options), {{"z", 0}, {"n", 0}},
                   GradientKind::kDenseAndRows),
        options_(options) {}

  void Update(const UpdateSpan& span) const override {
    HWY_DYNAMIC_DISPATCH(FtrlUpdate)(options_, span);
  }

 private:
  const FtrlOptions options_;
};

}  // namespace

RuleSpec Ftrl(const FtrlOptions& options) {
  return internal::WriteOptions<FtrlOptions>("FTRL", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeFtrl(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const FtrlOptions o,
                   internal::ReadOptions<FtrlOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("FTRL", "lr", o.lr, {.low_included = false}));
  RETURN_IF_ERROR(CheckOption("FTRL", "beta", o.beta, {}));
  RETURN_IF_ERROR(CheckOption("FTRL", "l1", o.l1, {}));
  RETURN_IF_ERROR(CheckOption("FTRL", "l2", o.l2, {}));
  return std::make_unique<FtrlRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
