// The loop of SparseAdam.

#if defined(HAWSER_OPTIM_KERNELS_SPARSE_ADAM_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_SPARSE_ADAM_INL_H_
#undef HAWSER_OPTIM_KERNELS_SPARSE_ADAM_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_SPARSE_ADAM_INL_H_
#endif

#include <cmath>
#include <span>

#include "hwy/highway.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/sparse_adam.h"
#include "optim/update_rule.h"

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

#endif  // HAWSER_OPTIM_KERNELS_SPARSE_ADAM_INL_H_
