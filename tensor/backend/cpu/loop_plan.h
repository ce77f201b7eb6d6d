// Plan of a loop over several strided operands in lockstep.
#ifndef HAWSER_TENSOR_BACKEND_CPU_LOOP_PLAN_H_
#define HAWSER_TENSOR_BACKEND_CPU_LOOP_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cpu {

// Row-major iteration over a shape by N operands that broadcast to it. Dims of
// size 1 are dropped, and adjacent dims that every operand crosses with one
// stride are merged. Offsets and strides are in elements.
template <size_t N>
class LoopPlan {
 public:
  using Offsets = std::array<int64_t, N>;

  LoopPlan(const Shape& shape, const std::array<const Tensor*, N>& operands) {
    for (int d = 0; d < shape.rank(); ++d) {
      Offsets strides;
      for (size_t i = 0; i < N; ++i) {
        strides[i] = BroadcastStride(*operands[i], shape, d);
      }
      Append(shape[d], strides);
    }
  }

  // Size of the innermost dim, which one call of ForEachRow()'s function
  // covers.
  int64_t row_size() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }
  int64_t row_stride(size_t operand) const {
    return rank_ == 0 ? 1 : strides_[rank_ - 1][operand];
  }

  // Calls row(offsets) for every row, in order; makes no call if there are no
  // elements.
  template <class Row>
  void ForEachRow(Row&& row) const {
    if (empty_) return;
    Offsets offsets{};
    std::array<int64_t, kMaxRank> index{};
    while (true) {
      row(static_cast<const Offsets&>(offsets));
      int d = rank_ - 2;
      for (; d >= 0; --d) {
        for (size_t i = 0; i < N; ++i) offsets[i] += strides_[d][i];
        if (++index[d] < sizes_[d]) break;
        for (size_t i = 0; i < N; ++i) {
          offsets[i] -= strides_[d][i] * sizes_[d];
        }
        index[d] = 0;
      }
      if (d < 0) return;
    }
  }

 private:
  static int64_t BroadcastStride(const Tensor& operand, const Shape& shape,
                                 int d) {
    const int i = d - (shape.rank() - operand.rank());
    if (i < 0 || operand.shape()[i] == 1) return 0;
    return operand.strides()[i];
  }

  void Append(int64_t size, const Offsets& strides) {
    if (size == 0) empty_ = true;
    if (size == 1) return;
    if (rank_ > 0) {
      bool merges = true;
      for (size_t i = 0; i < N; ++i) {
        merges &= strides_[rank_ - 1][i] == strides[i] * size;
      }
      if (merges) {
        sizes_[rank_ - 1] *= size;
        strides_[rank_ - 1] = strides;
        return;
      }
    }
    sizes_[rank_] = size;
    strides_[rank_] = strides;
    ++rank_;
  }

  int rank_ = 0;
  bool empty_ = false;
  std::array<int64_t, kMaxRank> sizes_;
  std::array<Offsets, kMaxRank> strides_;
};

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_LOOP_PLAN_H_
