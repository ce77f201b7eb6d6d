// The loop of FTRL.

#if defined(HAWSER_OPTIM_KERNELS_FTRL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_FTRL_INL_H_
#undef HAWSER_OPTIM_KERNELS_FTRL_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_FTRL_INL_H_
#endif

#include <span>

#include "hwy/highway.h"
#include "optim/ftrl.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/update_rule.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

// The learning rate for which "z" is stored. It is small, so that l1 is small
// compared with the part of z that determines the weight.
inline constexpr double kKeptRate = 0x1p-20;

template <class T>
struct FtrlKernel {
  FtrlKernel(const FtrlOptions& o, const UpdateSpan& span)
      : sign(o.maximize ? -1 : 1),
        inverse_lr(static_cast<T>(1 / span.learning_rate)),
        beta(static_cast<T>(o.beta)),
        l1(static_cast<T>(o.l1)),
        l2(static_cast<T>(o.l2)) {}

  // 1. Converts the stored z to the current learning rate, for the same weight.
  // 2. Runs the paper's step.
  // 3. Converts z back to the stored form.
  template <class D, class V>
  HWY_INLINE void operator()(D d, V& w, V g, V& z, V& n, V&) const {
    const V zero = hn::Zero(d);
    const V rate = hn::Set(d, inverse_lr);
    const V kept_rate = hn::Set(d, static_cast<T>(1 / kKeptRate));
    const V l1s = hn::Set(d, l1), l2s = hn::Set(d, l2);
    const V betas = hn::Set(d, beta);
    g = hn::Mul(g, hn::Set(d, sign));

    const V old_root = hn::Sqrt(n);
    const V old_scale = hn::Add(betas, old_root);
    const V old_curvature = hn::MulAdd(old_scale, rate, l2s);
    const V kept_excess = hn::Sub(hn::Abs(z), l1s);
    const V size = hn::Div(kept_excess, hn::Mul(old_scale, kept_rate));
    const V current =
        hn::IfThenElse(hn::Le(kept_excess, zero), z,
                       hn::CopySign(hn::MulAdd(size, old_curvature, l1s), z));
    // For an element without history: the z whose closed form is its value.
    const V start =
        hn::Neg(hn::CopySign(hn::MulAdd(hn::Abs(w), old_curvature, l1s), w));
    V new_z = hn::IfThenElse(
        hn::Eq(n, zero), hn::IfThenElseZero(hn::Ne(w, zero), start), current);

    n = hn::MulAdd(g, g, n);
    const V root = hn::Sqrt(n);
    const V sigma = hn::Mul(hn::Sub(root, old_root), rate);
    new_z = hn::NegMulAdd(sigma, w, hn::Add(new_z, g));
    const V scale = hn::Add(betas, root);
    const V excess = hn::Sub(hn::Abs(new_z), l1s);
    const V new_size = hn::Div(excess, hn::MulAdd(scale, rate, l2s));
    const auto is_zero = hn::Le(excess, zero);

    const V kept = hn::IfThenElse(
        is_zero, new_z,
        hn::CopySign(hn::MulAdd(new_size, hn::Mul(scale, kept_rate), l1s),
                     new_z));
    const auto stays = hn::Or(hn::Eq(g, zero), hn::Eq(n, zero));
    z = hn::IfThenElse(stays, z, kept);
    w = hn::IfThenElse(
        stays, w,
        hn::IfThenZeroElse(is_zero, hn::Neg(hn::CopySign(new_size, new_z))));
  }

  T sign, inverse_lr, beta, l1, l2;
};

void FtrlUpdate(const FtrlOptions& options, std::span<const UpdateSpan> spans) {
  UpdateElements<2, FtrlKernel>(options, spans);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_OPTIM_KERNELS_FTRL_INL_H_
