// The loop of SGD.

#if defined(HAWSER_OPTIM_KERNELS_SGD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_SGD_INL_H_
#undef HAWSER_OPTIM_KERNELS_SGD_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_SGD_INL_H_
#endif

#include <span>

#include "hwy/highway.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/sgd.h"
#include "optim/update_rule.h"

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

#endif  // HAWSER_OPTIM_KERNELS_SGD_INL_H_
