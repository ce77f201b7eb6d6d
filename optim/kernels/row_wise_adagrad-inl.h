// The loop of row-wise Adagrad.

#if defined(HAWSER_OPTIM_KERNELS_ROW_WISE_ADAGRAD_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_ROW_WISE_ADAGRAD_INL_H_
#undef HAWSER_OPTIM_KERNELS_ROW_WISE_ADAGRAD_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_ROW_WISE_ADAGRAD_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <span>

#include "hwy/highway.h"
#include "optim/kernels/update_loop-inl.h"
#include "optim/row_wise_adagrad.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/flush_denormals.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

// First pass: adds the squares of the gradients to a total.
struct AddSquares {
  double& total;

  template <class T>
  void operator()(const Block<T>& block) const {
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    auto sum = hn::Zero(d);
    size_t i = 0;
    for (; i + lanes <= block.count; i += lanes) {
      const auto g = hn::LoadU(d, block.gradient + i);
      sum = hn::MulAdd(g, g, sum);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (; i < block.count; ++i) {
      const double g = static_cast<double>(block.gradient[i]);
      total += g * g;
    }
  }
};

// Second pass: moves along the gradient by `step`.
template <class T>
struct RowMoveKernel {
  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V&, V&, V&) const {
    p = hn::MulAdd(hn::Set(d, step), g, p);
  }

  T step;
};

struct MoveAdagradRow {
  double step;

  template <class T>
  void operator()(const Block<T>& block) const {
    UpdateBlock<0>(RowMoveKernel<T>{static_cast<T>(step)}, block);
  }
};

// `T` is the type of the sum.
template <class T>
HWY_INLINE void UpdateAdagradRow(const RowWiseAdagradOptions& options,
                                 const UpdateSpan& span) {
  // The passes must not treat the sum as one number per element.
  UpdateSpan row = span;
  row.slots = {};
  double squares = 0;
  VisitBlocks(row, AddSquares{squares});
  T& sum = *static_cast<T*>(span.slots[0]);
  sum += static_cast<T>(squares / static_cast<double>(span.count));
  const double root = std::sqrt(static_cast<double>(sum));
  const double step = span.learning_rate / (root + options.eps);
  VisitBlocks(row, MoveAdagradRow{options.maximize ? step : -step});
}

void RowWiseAdagradUpdate(const RowWiseAdagradOptions& options,
                          std::span<const UpdateSpan> spans) {
  const tensor::FlushDenormals flush;
  for (const UpdateSpan& span : spans) {
    if (span.count == 0) continue;
    if (span.dtype == tensor::DType::kF64) {
      UpdateAdagradRow<double>(options, span);
    } else {
      UpdateAdagradRow<float>(options, span);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_OPTIM_KERNELS_ROW_WISE_ADAGRAD_INL_H_
