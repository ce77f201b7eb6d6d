// The loop of Adagrad.

#if defined(HAWSER_OPTIM_KERNELS_ADAGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_ADAGRAD_INL_H_
#undef HAWSER_OPTIM_KERNELS_ADAGRAD_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_ADAGRAD_INL_H_
#endif

#include <span>

#include "hwy/highway.h"
#include "optim/adagrad.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/update_rule.h"

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

#endif  // HAWSER_OPTIM_KERNELS_ADAGRAD_INL_H_
