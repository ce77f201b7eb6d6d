// The loop of Adam and AdamW.

#if defined(HAWSER_OPTIM_KERNELS_ADAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_ADAM_INL_H_
#undef HAWSER_OPTIM_KERNELS_ADAM_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_ADAM_INL_H_
#endif

#include <cmath>
#include <span>

#include "hwy/highway.h"
#include "optim/adam.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/update_rule.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

// Adam, or AdamW if the weight decay is decoupled from the gradient.
struct AdamVariant {
  const AdamOptions& options;
  bool decoupled;
};

template <class T>
struct AdamKernel {
  AdamKernel(const AdamVariant& variant, const UpdateSpan& span)
      : AdamKernel(variant.options, variant.decoupled, span) {}
  AdamKernel(const AdamOptions& o, bool decoupled, const UpdateSpan& span)
      : shrink(static_cast<T>(
            decoupled ? 1 - span.learning_rate * o.weight_decay : 1)),
        decay(static_cast<T>(decoupled ? 0 : o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest1(static_cast<T>(1 - o.beta1)),
        rest2(static_cast<T>(1 - o.beta2)),
        root(static_cast<T>(std::sqrt(1 - std::pow(o.beta2, span.step)))),
        eps(static_cast<T>(o.eps)),
        step(static_cast<T>(-span.learning_rate /
                            (1 - std::pow(o.beta1, span.step)))),
        amsgrad(o.amsgrad) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& m, V& v, V& largest) const {
    g = hn::Mul(g, hn::Set(d, sign));
    if (decay != 0) g = hn::MulAdd(hn::Set(d, decay), p, g);
    if (shrink != 1) p = hn::Mul(p, hn::Set(d, shrink));
    m = hn::MulAdd(hn::Set(d, beta1), m, hn::Mul(hn::Set(d, rest1), g));
    v = hn::MulAdd(hn::Set(d, beta2), v,
                   hn::Mul(hn::Set(d, rest2), hn::Mul(g, g)));
    if (amsgrad) largest = hn::Max(largest, v);
    const V second = hn::Div(hn::Sqrt(amsgrad ? largest : v), hn::Set(d, root));
    const V denominator = hn::Add(second, hn::Set(d, eps));
    p = hn::MulAdd(hn::Set(d, step), hn::Div(m, denominator), p);
  }

  T shrink, decay, sign, beta1, beta2, rest1, rest2, root, eps, step;
  bool amsgrad;
};

void AdamUpdate(const AdamOptions& options, bool decoupled,
                std::span<const UpdateSpan> spans) {
  const AdamVariant variant{options, decoupled};
  if (options.amsgrad) {
    UpdateElements<3, AdamKernel>(variant, spans);
  } else {
    UpdateElements<2, AdamKernel>(variant, spans);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_OPTIM_KERNELS_ADAM_INL_H_
