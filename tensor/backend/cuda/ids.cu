#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/ids.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

// Lowers `*first` to the first position of a bad id.
__global__ void FirstBadKernel(int64_t count, const int64_t* ids,
                               int64_t lowest, int64_t limit,
                               unsigned long long* first) {
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    if (ids[i] < lowest || ids[i] >= limit) {
      atomicMin(first, static_cast<unsigned long long>(i));
    }
  }
}

}  // namespace

absl::Status IdOutOfRange(std::string_view operation, int64_t position,
                          int64_t id, int64_t limit) {
  return absl::OutOfRangeError(absl::StrCat(
      absl::string_view(operation.data(), operation.size()), ": id ", id,
      " at position ", position, " is not in [0, ", limit, ")"));
}

absl::StatusOr<Tensor> CheckedIds(std::string_view operation, const Tensor& ids,
                                  int64_t limit, int64_t lowest) {
  ASSIGN_OR_RETURN(const Tensor wide, ids.To(DType::kI64));
  ASSIGN_OR_RETURN(const Tensor dense, wide.Contiguous());
  const int64_t count = dense.num_elements();
  if (count == 0) return dense;
  const DeviceGuard guard(ids.device());
  ASSIGN_OR_RETURN(Tensor first,
                   Tensor::TryEmpty({1}, {DType::kI64, ids.device()}));
  // All bits set: as an unsigned number, greater than every position.
  RETURN_IF_ERROR(CudaStatus(
      cudaMemsetAsync(first.raw_data(), 0xff, sizeof(int64_t), kStream),
      operation));
  FirstBadKernel<<<Blocks(count), kThreads, 0, kStream>>>(
      count, In<int64_t>(dense), lowest, limit, Out<unsigned long long>(first));
  RETURN_IF_ERROR(LaunchStatus(operation));
  int64_t position = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpy(&position, first.raw_data(), sizeof(position),
                            cudaMemcpyDeviceToHost),
                 operation));
  if (position == -1) return dense;
  int64_t id = 0;
  RETURN_IF_ERROR(CudaStatus(cudaMemcpy(&id, In<int64_t>(dense) + position,
                                        sizeof(id), cudaMemcpyDeviceToHost),
                             operation));
  return IdOutOfRange(operation, position, id, limit);
}

}  // namespace hawser::tensor::cuda
