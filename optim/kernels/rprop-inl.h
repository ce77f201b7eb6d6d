// The loop of Rprop.

#if defined(HAWSER_OPTIM_KERNELS_RPROP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_RPROP_INL_H_
#undef HAWSER_OPTIM_KERNELS_RPROP_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_RPROP_INL_H_
#endif

#include <span>

#include "hwy/highway.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/rprop.h"
#include "optim/update_rule.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct RpropKernel {
  RpropKernel(const RpropOptions& o, const UpdateSpan& span)
      : sign(o.maximize ? -1 : 1),
        lr(static_cast<T>(span.learning_rate)),
        shrink(static_cast<T>(o.eta_minus)),
        grow(static_cast<T>(o.eta_plus)),
        smallest(static_cast<T>(o.step_size_min)),
        largest(static_cast<T>(o.step_size_max)),
        first(span.step == 1) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V& prev, V& size, V&) const {
    const V zero = hn::Zero(d);
    g = hn::Mul(g, hn::Set(d, sign));
    if (first) {
      prev = zero;
      size = hn::Set(d, lr);
    }
    const V agreement = hn::Mul(g, prev);
    const auto turned = hn::Lt(agreement, zero);
    V factor = hn::Set(d, T{1});
    factor = hn::IfThenElse(turned, hn::Set(d, shrink), factor);
    factor = hn::IfThenElse(hn::Gt(agreement, zero), hn::Set(d, grow), factor);
    size = hn::Min(hn::Max(hn::Mul(size, factor), hn::Set(d, smallest)),
                   hn::Set(d, largest));
    prev = hn::IfThenZeroElse(turned, g);
    const V up = hn::IfThenElseZero(hn::Gt(prev, zero), size);
    const V down = hn::IfThenElseZero(hn::Lt(prev, zero), size);
    p = hn::Add(hn::Sub(p, up), down);
  }

  T sign, lr, shrink, grow, smallest, largest;
  bool first;
};

void RpropUpdate(const RpropOptions& options,
                 std::span<const UpdateSpan> spans) {
  UpdateElements<2, RpropKernel>(options, spans);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_OPTIM_KERNELS_RPROP_INL_H_
