#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/ids.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

// Bag i is ids[bounds[i]] up to ids[bounds[i + 1]].
struct Bags {
  int64_t count;
  int64_t width;  // Width of a table row.
  const int64_t* ids;
  const int64_t* bounds;
};

// One thread per element of the result.
template <class T>
__global__ void BagKernel(BagMode mode, Bags bags, const T* table, T* out,
                          int64_t* max_ids) {
  using C = ComputeType<T>;
  for (int64_t i = FirstItem(); i < bags.count * bags.width; i += ItemStep()) {
    const int64_t bag = i / bags.width, column = i % bags.width;
    const int64_t first = bags.bounds[bag], last = bags.bounds[bag + 1];
    C result = 0;
    int64_t winner = -1;
    for (int64_t k = first; k < last; ++k) {
      const C value = Load(table + bags.ids[k] * bags.width + column);
      if (mode != BagMode::kMax) {
        result += value;
      } else if (winner < 0 || value > result || value != value) {
        result = value;
        winner = bags.ids[k];
      }
    }
    if (mode == BagMode::kMean && first < last) result /= C(last - first);
    Store(out + i, result);
    if (mode == BagMode::kMax) max_ids[i] = winner;
  }
}

// One thread per element of `dout`.
template <class T>
__global__ void BagGradKernel(BagMode mode, Bags bags, const T* dout,
                              const int64_t* max_ids, T* dtable) {
  using C = ComputeType<T>;
  for (int64_t i = FirstItem(); i < bags.count * bags.width; i += ItemStep()) {
    const int64_t bag = i / bags.width, column = i % bags.width;
    const int64_t first = bags.bounds[bag], last = bags.bounds[bag + 1];
    C slope = Load(dout + i);
    if (mode == BagMode::kMax) {
      const int64_t winner = max_ids[i];
      if (winner >= 0) AtomicAdd(dtable + winner * bags.width + column, slope);
      continue;
    }
    if (mode == BagMode::kMean && first < last) slope /= C(last - first);
    for (int64_t k = first; k < last; ++k) {
      AtomicAdd(dtable + bags.ids[k] * bags.width + column, slope);
    }
  }
}

// Checks `offsets`, appends the number of ids, and returns the result on the
// device.
absl::StatusOr<Tensor> BagBounds(const Tensor& offsets, int64_t num_ids) {
  // There are few offsets, so check them in host memory.
  ASSIGN_OR_RETURN(const Tensor host, offsets.To(kCpu));
  ASSIGN_OR_RETURN(const Tensor wide, host.To(DType::kI64));
  std::vector<int64_t> bounds = wide.ToVector<int64_t>();
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i] < 0 || bounds[i] > num_ids) {
      return IdOutOfRange("EmbeddingBag: offsets", static_cast<int64_t>(i),
                          bounds[i], num_ids + 1);
    }
  }
  if (bounds.empty() ? num_ids != 0 : bounds[0] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("EmbeddingBag: the first of the offsets must be 0: ",
                     offsets.DebugString()));
  }
  bounds.push_back(num_ids);
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i] < bounds[i - 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("EmbeddingBag: offsets decrease from ", bounds[i - 1],
                       " to ", bounds[i], " at position ", i));
    }
  }
  const auto count = static_cast<int64_t>(bounds.size());
  return Tensor::FromVector(bounds, {count}).To(offsets.device());
}

}  // namespace

absl::Status CudaBackend::EmbeddingBag(BagMode mode, const Tensor& weight,
                                       const Tensor& ids, const Tensor& offsets,
                                       Tensor& out, Tensor& max_ids) {
  ASSIGN_OR_RETURN(const Tensor dense_ids,
                   CheckedIds("EmbeddingBag", ids, weight.dim(0)));
  ASSIGN_OR_RETURN(const Tensor bounds, BagBounds(offsets, ids.num_elements()));
  if (out.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor table, weight.Contiguous());
  const DeviceGuard guard(out.device());
  const Bags bags = {out.dim(0), out.dim(1), In<int64_t>(dense_ids),
                     In<int64_t>(bounds)};
  return VisitFloat(weight.dtype(), "EmbeddingBag", [&]<class T>() {
    BagKernel<T><<<Blocks(out.num_elements()), kThreads, 0, kStream>>>(
        mode, bags, In<T>(table), Out<T>(out),
        mode == BagMode::kMax ? Out<int64_t>(max_ids) : nullptr);
    return LaunchStatus("EmbeddingBag");
  });
}

absl::Status CudaBackend::EmbeddingBagGrad(BagMode mode, const Tensor& dout,
                                           const Tensor& ids,
                                           const Tensor& offsets,
                                           const Tensor& max_ids,
                                           Tensor& dweight) {
  const int64_t rows = dweight.dim(0);
  ASSIGN_OR_RETURN(const Tensor dense_ids,
                   CheckedIds("EmbeddingBag", ids, rows));
  ASSIGN_OR_RETURN(const Tensor bounds, BagBounds(offsets, ids.num_elements()));
  Tensor winners;  // -1 for an empty bag.
  if (mode == BagMode::kMax) {
    ASSIGN_OR_RETURN(winners, CheckedIds("EmbeddingBagGrad: max_ids", max_ids,
                                         rows, /*lowest=*/-1));
  }
  if (dout.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, dout.Contiguous());
  const DeviceGuard guard(dweight.device());
  const Bags bags = {dout.dim(0), dout.dim(1), In<int64_t>(dense_ids),
                     In<int64_t>(bounds)};
  return VisitFloatSum(dout.dtype(), "EmbeddingBagGrad", [&]<class T>() {
    BagGradKernel<T><<<Blocks(dout.num_elements()), kThreads, 0, kStream>>>(
        mode, bags, In<T>(dense),
        winners.defined() ? In<int64_t>(winners) : nullptr, Out<T>(dweight));
    return LaunchStatus("EmbeddingBagGrad");
  });
}

}  // namespace hawser::tensor::cuda
