#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/ids.h"
#include "tensor/backend/cpu/loop_plan.h"
#include "tensor/backend/cpu/scalar_elementwise.h"
#include "tensor/backend/cpu/vector_elementwise.h"

namespace hawser::tensor::cpu {
namespace {

// A dense tensor viewed as [outer, size, inner] around one dim.
struct Around {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;

  Around(const Tensor& t, int dim) : size(t.dim(dim)) {
    for (int d = 0; d < dim; ++d) outer *= t.shape()[d];
    for (int d = dim + 1; d < t.rank(); ++d) inner *= t.shape()[d];
  }
};

// Adds `n` dense elements of `dtype` to `out`.
void AddRow(DType dtype, const char* src, char* out, int64_t n) {
  if (dtype == DType::kF32) {
    float* const sum = reinterpret_cast<float*>(out);
    AddScaled(sum, reinterpret_cast<const float*>(src), 1, sum, n);
    return;
  }
  const int64_t bytes = ItemBytes(dtype);
  VisitComputeType(dtype, [&]<class C>() {
    std::array<C, kBlock> a, b;
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      const C* const x =
          ReadBlock(dtype, src + i * bytes, 0, 1, count, a.data());
      const C* const y =
          ReadBlock(dtype, out + i * bytes, 0, 1, count, b.data());
      Binary(BinaryOp::kAdd, x, y, a.data(), count);
      WriteBlock(dtype, out + i * bytes, 0, 1, count, a.data());
    }
  });
}

// Strides, in elements, of the index and operands of a gather or scatter. The
// stride of the indexed dim is applied separately.
struct IndexedWalk {
  Tensor indexed;  // with size 1, and so stride 0, in the indexed dim
  int64_t stride;

  static absl::StatusOr<IndexedWalk> Along(const Tensor& t, int dim,
                                           const Shape& shape) {
    Tensor view = t;
    for (int d = 0; d < t.rank(); ++d) {
      const int64_t size =
          d == dim ? std::min<int64_t>(1, t.shape()[d]) : shape[d];
      ASSIGN_OR_RETURN(view, view.Narrow(d, 0, size));
    }
    return IndexedWalk{view, t.strides()[dim]};
  }
};

// Calls move(element of `indexed`, element of `other`) for each element of
// `index`. `other` has the shape of `index`.
template <class Move>
absl::Status ForEachIndex(const char* operation, int dim, const Tensor& indexed,
                          const Tensor& index, const Tensor& other,
                          Move&& move) {
  if (index.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                   ReadIds(operation, index, indexed.dim(dim)));
  ASSIGN_OR_RETURN(const IndexedWalk walk,
                   IndexedWalk::Along(indexed, dim, index.shape()));
  const LoopPlan<2> plan(index.shape(), {&walk.indexed, &other});
  const int64_t* id = ids.data();
  plan.ForEachRow([&](const auto& offsets) {
    for (int64_t i = 0; i < plan.row_size(); ++i) {
      move(offsets[0] + i * plan.row_stride(0) + *id++ * walk.stride,
           offsets[1] + i * plan.row_stride(1));
    }
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status CpuBackend::IndexSelect(const Tensor& in, int dim,
                                     const Tensor& index, Tensor& out) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                   ReadIds("IndexSelect", index, in.dim(dim)));
  if (out.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, in.Contiguous());
  const Around from(dense, dim);
  const auto row_bytes =
      static_cast<size_t>(from.inner * ItemBytes(in.dtype()));
  const auto* const source = static_cast<const char*>(dense.raw_data());
  auto* target = static_cast<char*>(out.raw_data());
  for (int64_t i = 0; i < from.outer; ++i) {
    const char* const part =
        source + static_cast<size_t>(i * from.size) * row_bytes;
    for (const int64_t id : ids) {
      std::memcpy(target, part + static_cast<size_t>(id) * row_bytes,
                  row_bytes);
      target += row_bytes;
    }
  }
  return absl::OkStatus();
}

absl::Status CpuBackend::IndexAdd(int dim, const Tensor& index,
                                  const Tensor& src, Tensor& out) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                   ReadIds("IndexAdd", index, out.dim(dim)));
  if (src.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, src.Contiguous());
  const Around to(out, dim);
  const int64_t row_bytes = to.inner * ItemBytes(out.dtype());
  const auto* source = static_cast<const char*>(dense.raw_data());
  auto* const target = static_cast<char*>(out.raw_data());
  for (int64_t i = 0; i < to.outer; ++i) {
    for (const int64_t id : ids) {
      AddRow(out.dtype(), source, target + (i * to.size + id) * row_bytes,
             to.inner);
      source += row_bytes;
    }
  }
  return absl::OkStatus();
}

absl::Status CpuBackend::Gather(const Tensor& in, int dim, const Tensor& index,
                                Tensor& out) {
  return VisitDType(in.dtype(), [&]<class T>() {
    const T* const source = in.data<T>();
    T* const target = out.data<T>();
    return ForEachIndex(
        "Gather", dim, in, index, out,
        [&](int64_t from, int64_t to) { target[to] = source[from]; });
  });
}

absl::Status CpuBackend::ScatterAdd(int dim, const Tensor& index,
                                    const Tensor& src, Tensor& out) {
  Tensor corner = src;
  for (int d = 0; d < src.rank(); ++d) {
    ASSIGN_OR_RETURN(corner, corner.Narrow(d, 0, index.shape()[d]));
  }
  return VisitDType(out.dtype(), [&]<class T>() {
    const T* const source = corner.data<T>();
    T* const target = out.data<T>();
    return ForEachIndex(
        "ScatterAdd", dim, out, index, corner, [&](int64_t to, int64_t from) {
          if constexpr (std::is_integral_v<T>) {
            target[to] = static_cast<T>(static_cast<uint64_t>(target[to]) +
                                        static_cast<uint64_t>(source[from]));
          } else if constexpr (std::is_same_v<T, double>) {
            target[to] += source[from];
          } else {
            target[to] = T(static_cast<float>(target[to]) +
                           static_cast<float>(source[from]));
          }
        });
  });
}

}  // namespace hawser::tensor::cpu
