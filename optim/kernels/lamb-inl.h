// The loop of LAMB.

#if defined(HAWSER_OPTIM_KERNELS_LAMB_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_LAMB_INL_H_
#undef HAWSER_OPTIM_KERNELS_LAMB_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_LAMB_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "hwy/highway.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/lamb.h"
#include "optim/update_rule.h"
#include "tensor/flush_denormals.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct LambConstants {
  LambConstants(const LambOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest1(static_cast<T>(1 - o.beta1)),
        rest2(static_cast<T>(1 - o.beta2)),
        correction1(static_cast<T>(1 - std::pow(o.beta1, span.step))),
        correction2(static_cast<T>(1 - std::pow(o.beta2, span.step))),
        eps(static_cast<T>(o.eps)) {}

  // The paper's r plus weight decay, from the updated moments.
  template <class D, class V>
  HWY_INLINE V Direction(D d, V p, V m, V v) const {
    const V mean = hn::Div(m, hn::Set(d, correction1));
    const V root = hn::Sqrt(hn::Div(v, hn::Set(d, correction2)));
    const V r = hn::Div(mean, hn::Add(root, hn::Set(d, eps)));
    return decay == 0 ? r : hn::MulAdd(hn::Set(d, decay), p, r);
  }

  T decay, sign, beta1, beta2, rest1, rest2, correction1, correction2, eps;
};

// Sums of the squared elements of parameter and direction.
struct SquaredNorms {
  double parameter = 0;
  double direction = 0;
};

// First pass: updates the moments and computes the norms. Sums within a chunk
// are vectors of T; their total is f64.
template <class T>
struct UpdateLambMoments {
  template <class D, class V>
  HWY_INLINE void Vector(D d, const Block<T>& block, size_t i, size_t count,
                         V& pp, V& rr) const {
    const auto g =
        hn::Mul(hn::LoadU(d, block.gradient + i), hn::Set(d, c.sign));
    const auto m =
        hn::MulAdd(hn::Set(d, c.beta1), hn::LoadU(d, block.slots[0] + i),
                   hn::Mul(hn::Set(d, c.rest1), g));
    const auto v =
        hn::MulAdd(hn::Set(d, c.beta2), hn::LoadU(d, block.slots[1] + i),
                   hn::Mul(hn::Set(d, c.rest2), hn::Mul(g, g)));
    hn::StoreU(m, d, block.slots[0] + i);
    hn::StoreU(v, d, block.slots[1] + i);
    const auto p = hn::LoadU(d, block.parameter + i);
    // The zeros that pad a tail would give 0 / 0 without eps.
    const auto r =
        hn::IfThenElseZero(hn::FirstN(d, count), c.Direction(d, p, m, v));
    pp = hn::MulAdd(p, p, pp);
    rr = hn::MulAdd(r, r, rr);
  }

  HWY_INLINE void Chunk(const Block<T>& block, size_t begin, size_t end) {
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    auto pp = hn::Zero(d);
    auto rr = hn::Zero(d);
    size_t i = begin;
    for (; i + lanes <= end; i += lanes) Vector(d, block, i, lanes, pp, rr);
    if (i < end) {
      Tail<T> tail(block, i);
      Vector(d, tail.block(), 0, end - i, pp, rr);
      tail.WriteBack();
    }
    norms.parameter += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, pp)));
    norms.direction += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, rr)));
  }

  const LambConstants<T>& c;
  SquaredNorms& norms;
};

struct VisitLambMoments {
  const LambOptions& options;
  const UpdateSpan& span;
  SquaredNorms& norms;

  template <class T>
  void operator()(const Block<T>& block) const {
    constexpr size_t kChunk = 1024;
    const LambConstants<T> constants(options, span);
    UpdateLambMoments<T> moments{constants, norms};
    for (size_t i = 0; i < block.count; i += kChunk) {
      moments.Chunk(block, i, std::min(i + kChunk, block.count));
    }
  }
};

// Second pass, given lr times the trust ratio.
template <class T>
struct LambMoveKernel : LambConstants<T> {
  LambMoveKernel(const LambOptions& o, const UpdateSpan& span, double move)
      : LambConstants<T>(o, span), step(static_cast<T>(-move)) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V, V& m, V& v, V&) const {
    p = hn::MulAdd(hn::Set(d, step), this->Direction(d, p, m, v), p);
  }

  T step;
};

struct VisitLambMove {
  const LambOptions& options;
  const UpdateSpan& span;
  double step;

  template <class T>
  void operator()(const Block<T>& block) const {
    UpdateBlock<2>(LambMoveKernel<T>(options, span, step), block);
  }
};

void LambUpdate(const LambOptions& options, std::span<const UpdateSpan> spans) {
  const tensor::FlushDenormals flush;
  for (const UpdateSpan& span : spans) {
    SquaredNorms norms;
    VisitBlocks(span, VisitLambMoments{options, span, norms});
    double ratio = 1;
    if (norms.parameter > 0 && norms.direction > 0) {
      ratio = std::sqrt(norms.parameter / norms.direction);
    }
    VisitBlocks(span, VisitLambMove{options, span, span.learning_rate * ratio});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_OPTIM_KERNELS_LAMB_INL_H_
