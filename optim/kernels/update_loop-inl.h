// Loop over elements that all rules share. Highway's foreach_target.h compiles
// it once per instruction set, so it does not have an ordinary include guard.
//
// The header of a rule's loop passes a kernel: an object whose call operator
// takes a vector tag, the vectors of parameter and gradient, and those of up to
// three slots, and updates parameter and slots. A pass reads and writes each
// element once.

#if defined(HAWSER_OPTIM_KERNELS_UPDATE_LOOP_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_OPTIM_KERNELS_UPDATE_LOOP_INL_H_
#undef HAWSER_OPTIM_KERNELS_UPDATE_LOOP_INL_H_
#else
#define HAWSER_OPTIM_KERNELS_UPDATE_LOOP_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "hwy/highway.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/flush_denormals.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Number of elements that the 16-bit path converts to f32 at a time.
inline constexpr size_t kBlock = 512;

// Consecutive elements of one arithmetic type.
template <class T>
struct Block {
  size_t count;
  T* parameter;
  const T* gradient;
  T* slots[kMaxSlots];
};

// Applies `kernel` to the vector at `i`. Loads and stores `kSlots` slots.
template <size_t kSlots, class D, class Kernel>
HWY_INLINE void UpdateVector(D d, const Kernel& kernel,
                             const Block<hn::TFromD<D>>& block, size_t i) {
  auto p = hn::LoadU(d, block.parameter + i);
  const auto g = hn::LoadU(d, block.gradient + i);
  auto s0 = hn::Zero(d);
  auto s1 = hn::Zero(d);
  auto s2 = hn::Zero(d);
  if constexpr (kSlots > 0) s0 = hn::LoadU(d, block.slots[0] + i);
  if constexpr (kSlots > 1) s1 = hn::LoadU(d, block.slots[1] + i);
  if constexpr (kSlots > 2) s2 = hn::LoadU(d, block.slots[2] + i);
  kernel(d, p, g, s0, s1, s2);
  if constexpr (kSlots > 0) hn::StoreU(s0, d, block.slots[0] + i);
  if constexpr (kSlots > 1) hn::StoreU(s1, d, block.slots[1] + i);
  if constexpr (kSlots > 2) hn::StoreU(s2, d, block.slots[2] + i);
  hn::StoreU(p, d, block.parameter + i);
}

// A copy of the elements from `begin`, fewer than a vector, padded with zeros.
// The same arithmetic then applies to all elements.
template <class T>
class Tail {
 public:
  Tail(const Block<T>& block, size_t begin)
      : block_(block),
        begin_(begin),
        bytes_((block.count - begin) * sizeof(T)) {
    std::memcpy(parameter_, block.parameter + begin, bytes_);
    std::memcpy(gradient_, block.gradient + begin, bytes_);
    for (size_t s = 0; s < kMaxSlots; ++s) {
      if (block.slots[s] == nullptr) continue;
      std::memcpy(slots_[s], block.slots[s] + begin, bytes_);
    }
  }

  Block<T> block() {
    return {kLanes, parameter_, gradient_, {slots_[0], slots_[1], slots_[2]}};
  }

  void WriteBack() const {
    std::memcpy(block_.parameter + begin_, parameter_, bytes_);
    for (size_t s = 0; s < kMaxSlots; ++s) {
      if (block_.slots[s] == nullptr) continue;
      std::memcpy(block_.slots[s] + begin_, slots_[s], bytes_);
    }
  }

 private:
  static constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(T);

  const Block<T>& block_;
  const size_t begin_;
  const size_t bytes_;
  T parameter_[kLanes] = {};
  T gradient_[kLanes] = {};
  T slots_[kMaxSlots][kLanes] = {};
};

template <size_t kSlots, class T, class Kernel>
void UpdateBlock(const Kernel& kernel, const Block<T>& block) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= block.count; i += lanes) {
    UpdateVector<kSlots>(d, kernel, block, i);
  }
  if (i == block.count) return;
  Tail<T> tail(block, i);
  UpdateVector<kSlots>(d, kernel, tail.block(), 0);
  tail.WriteBack();
}

// Calls `visit` with f32 copies of the elements, block by block, and writes the
// parameter back to its 16-bit dtype.
template <class Narrow, class Visit>
void VisitNarrow(const UpdateSpan& span, const Visit& visit) {
  Narrow* const parameter = static_cast<Narrow*>(span.parameter);
  const Narrow* const gradient = static_cast<const Narrow*>(span.gradient);
  float wide_parameter[kBlock];
  float wide_gradient[kBlock];
  for (size_t begin = 0; begin < span.count; begin += kBlock) {
    const size_t n = std::min(kBlock, span.count - begin);
    for (size_t i = 0; i < n; ++i) {
      wide_parameter[i] = static_cast<float>(parameter[begin + i]);
      wide_gradient[i] = static_cast<float>(gradient[begin + i]);
    }
    Block<float> block{n, wide_parameter, wide_gradient, {}};
    for (size_t s = 0; s < kMaxSlots; ++s) {
      float* slot = static_cast<float*>(span.slots[s]);
      block.slots[s] = slot == nullptr ? nullptr : slot + begin;
    }
    visit(block);
    for (size_t i = 0; i < n; ++i) {
      parameter[begin + i] = Narrow(wide_parameter[i]);
    }
  }
}

template <class T, class Visit>
void VisitWide(const UpdateSpan& span, const Visit& visit) {
  visit(
      Block<T>{span.count,
               static_cast<T*>(span.parameter),
               static_cast<const T*>(span.gradient),
               {static_cast<T*>(span.slots[0]), static_cast<T*>(span.slots[1]),
                static_cast<T*>(span.slots[2])}});
}

template <class Visit>
void VisitBlocks(const UpdateSpan& span, const Visit& visit) {
  switch (span.dtype) {
    case tensor::DType::kF64:
      return VisitWide<double>(span, visit);
    case tensor::DType::kF16:
      return VisitNarrow<tensor::Half>(span, visit);
    case tensor::DType::kBF16:
      return VisitNarrow<tensor::BFloat16>(span, visit);
    default:
      return VisitWide<float>(span, visit);
  }
}

// Creates `Kernel<T>` from the rule's options and the span and applies it to
// the span. T is the arithmetic type for the span's dtype.
template <size_t kSlots, template <class> class Kernel, class Options>
struct RunKernel {
  const Options& options;
  const UpdateSpan& span;

  template <class T>
  void operator()(const Block<T>& block) const {
    UpdateBlock<kSlots>(Kernel<T>(options, span), block);
  }
};

template <size_t kSlots, template <class> class Kernel, class Options>
void UpdateElements(const Options& options, std::span<const UpdateSpan> spans) {
  const tensor::FlushDenormals flush;
  for (const UpdateSpan& span : spans) {
    VisitBlocks(span, RunKernel<kSlots, Kernel, Options>{options, span});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#endif  // HAWSER_OPTIM_KERNELS_UPDATE_LOOP_INL_H_
