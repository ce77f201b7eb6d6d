// The loop of Adadelta.

#if defined(HAWSER_OPTIM_KERNELS_ADADELTA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_ADADELTA_INL_H_
#undef HAWSER_OPTIM_KERNELS_ADADELTA_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_ADADELTA_INL_H_
#endif

#include <span>

#include "hwy/highway.h"
#include "optim/adadelta.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/update_rule.h"

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

#endif  // HAWSER_OPTIM_KERNELS_ADADELTA_INL_H_
