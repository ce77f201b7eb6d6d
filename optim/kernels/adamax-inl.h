// The loop of Adamax.

#if defined(HAWSER_OPTIM_KERNELS_ADAMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_ADAMAX_INL_H_
#undef HAWSER_OPTIM_KERNELS_ADAMAX_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_ADAMAX_INL_H_
#endif

#include <cmath>
#include <span>

#include "hwy/highway.h"
#include "optim/adamax.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/update_rule.h"

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

#endif  // HAWSER_OPTIM_KERNELS_ADAMAX_INL_H_
