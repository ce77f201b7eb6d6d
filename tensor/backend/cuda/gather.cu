#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/ids.h"
#include "tensor/backend/cuda/index_plan.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

// Plan of a gather or scatter: iterates over the index, the table without its
// indexed dim, and the other tensor.
struct IndexedPlan {
  IndexPlan<3> walk;   // Index, other tensor, table without the indexed dim.
  int64_t stride = 0;  // Stride of the table's indexed dim.
};

// `index_strides` are the strides of the index along `shape`.
IndexedPlan MakeIndexedPlan(const Shape& shape, const Strides& index_strides,
                            const Tensor& other, const Tensor& table, int dim) {
  IndexedPlan plan;
  for (int d = 0; d < shape.rank(); ++d) {
    plan.walk.Append(shape[d], {index_strides[d], other.strides()[d],
                                d == dim ? int64_t{0} : table.strides()[d]});
  }
  plan.stride = table.strides()[dim];
  return plan;
}

// Strides of an index [n] that varies only along `dim` of `shape`.
Strides AlongDim(const Shape& shape, int dim) {
  std::array<int64_t, kMaxRank> strides = {};
  strides[static_cast<size_t>(dim)] = 1;
  return Strides(std::span<const int64_t>(strides.data(),
                                          static_cast<size_t>(shape.rank())));
}

template <class Word>
__global__ void GatherKernel(IndexedPlan plan, const int64_t* index,
                             const Word* table, Word* out) {
  for (int64_t i = FirstItem(); i < plan.walk.count; i += ItemStep()) {
    const auto offsets = plan.walk(i);
    const int64_t id = index[offsets.at[0]];
    out[offsets.at[1]] = table[offsets.at[2] + id * plan.stride];
  }
}

template <class T>
__global__ void ScatterAddKernel(IndexedPlan plan, const int64_t* index,
                                 const T* src, T* table) {
  for (int64_t i = FirstItem(); i < plan.walk.count; i += ItemStep()) {
    const auto offsets = plan.walk(i);
    const int64_t id = index[offsets.at[0]];
    AtomicAdd(table + offsets.at[2] + id * plan.stride,
              Load(src + offsets.at[1]));
  }
}

absl::Status RunGather(const IndexedPlan& plan, const Tensor& ids,
                       const Tensor& table, Tensor& out) {
  if (plan.walk.count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  return VisitWord(out.dtype(), [&]<class Word>() {
    GatherKernel<Word><<<Blocks(plan.walk.count), kThreads, 0, kStream>>>(
        plan, In<int64_t>(ids), In<Word>(table), Out<Word>(out));
    return LaunchStatus("gather");
  });
}

absl::Status RunScatterAdd(const IndexedPlan& plan, const Tensor& ids,
                           const Tensor& src, Tensor& table) {
  if (plan.walk.count == 0) return absl::OkStatus();
  const DeviceGuard guard(table.device());
  return VisitAddable(table.dtype(), "scattered addition", [&]<class T>() {
    ScatterAddKernel<T><<<Blocks(plan.walk.count), kThreads, 0, kStream>>>(
        plan, In<int64_t>(ids), In<T>(src), Out<T>(table));
    return LaunchStatus("scattered addition");
  });
}

}  // namespace

absl::Status CudaBackend::IndexSelect(const Tensor& in, int dim,
                                      const Tensor& index, Tensor& out) {
  ASSIGN_OR_RETURN(const Tensor ids,
                   CheckedIds("IndexSelect", index, in.dim(dim)));
  return RunGather(
      MakeIndexedPlan(out.shape(), AlongDim(out.shape(), dim), out, in, dim),
      ids, in, out);
}

absl::Status CudaBackend::IndexAdd(int dim, const Tensor& index,
                                   const Tensor& src, Tensor& out) {
  ASSIGN_OR_RETURN(const Tensor ids,
                   CheckedIds("IndexAdd", index, out.dim(dim)));
  return RunScatterAdd(
      MakeIndexedPlan(src.shape(), AlongDim(src.shape(), dim), src, out, dim),
      ids, src, out);
}

absl::Status CudaBackend::Gather(const Tensor& in, int dim, const Tensor& index,
                                 Tensor& out) {
  if (index.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor ids, CheckedIds("Gather", index, in.dim(dim)));
  return RunGather(MakeIndexedPlan(ids.shape(), ids.strides(), out, in, dim),
                   ids, in, out);
}

absl::Status CudaBackend::ScatterAdd(int dim, const Tensor& index,
                                     const Tensor& src, Tensor& out) {
  if (index.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor ids,
                   CheckedIds("ScatterAdd", index, out.dim(dim)));
  return RunScatterAdd(
      MakeIndexedPlan(ids.shape(), ids.strides(), src, out, dim), ids, src,
      out);
}

}  // namespace hawser::tensor::cuda
