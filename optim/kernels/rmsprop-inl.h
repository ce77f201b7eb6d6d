// The loop of RMSprop.

#if defined(HAWSER_OPTIM_KERNELS_RMSPROP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_RMSPROP_INL_H_
#undef HAWSER_OPTIM_KERNELS_RMSPROP_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_RMSPROP_INL_H_
#endif

#include <span>

#include "hwy/highway.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/rmsprop.h"
#include "optim/update_rule.h"

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

#endif  // HAWSER_OPTIM_KERNELS_RMSPROP_INL_H_
