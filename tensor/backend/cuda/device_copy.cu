// Copies between the CPU and CUDA devices, and on one CUDA device with a change
// of strides or dtype.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/device_copy.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/index_plan.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/device_copy.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

template <class Word>
__global__ void MoveKernel(IndexPlan<2> plan, Word* to, const Word* from) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const auto offsets = plan(i);
    to[offsets.at[0]] = from[offsets.at[1]];
  }
}

// Intermediate type of conversions: double for floating-point dtypes, int64_t
// for all others. The dtypes are the same for all threads, so the switches cost
// little compared to memory access.
template <class Wide>
__device__ Wide LoadWide(DType dtype, const void* base, int64_t i) {
  if constexpr (std::is_same_v<Wide, double>) {
    switch (dtype) {
      case DType::kF64:
        return static_cast<const double*>(base)[i];
      case DType::kF16:
        return Load(static_cast<const __half*>(base) + i);
      case DType::kBF16:
        return Load(static_cast<const __nv_bfloat16*>(base) + i);
      default:
        return static_cast<const float*>(base)[i];
    }
  } else {
    switch (dtype) {
      case DType::kI64:
        return static_cast<const int64_t*>(base)[i];
      case DType::kI32:
        return static_cast<const int32_t*>(base)[i];
      case DType::kU8:
        return static_cast<const uint8_t*>(base)[i];
      default:
        return Load(static_cast<const bool*>(base) + i);
    }
  }
}

// From a float: truncated and clamped to the range, NaN to 0. From an integer:
// its low bits.
template <class To, class Wide>
__device__ To ToInteger(Wide value) {
  if constexpr (std::is_floating_point_v<Wide>) {
    using Limits = std::numeric_limits<To>;
    if (value >= static_cast<Wide>(Limits::max())) return Limits::max();
    if (value <= static_cast<Wide>(Limits::min())) return Limits::min();
    return value == value ? static_cast<To>(value) : To{0};
  } else {
    return static_cast<To>(value);
  }
}

template <class Wide>
__device__ void StoreWide(DType dtype, void* base, int64_t i, Wide value) {
  switch (dtype) {
    case DType::kF32:
      return Store(static_cast<float*>(base) + i, value);
    case DType::kF64:
      return Store(static_cast<double*>(base) + i, value);
    case DType::kF16:
      return Store(static_cast<__half*>(base) + i, value);
    case DType::kBF16:
      return Store(static_cast<__nv_bfloat16*>(base) + i, value);
    case DType::kI64:
      static_cast<int64_t*>(base)[i] = ToInteger<int64_t>(value);
      return;
    case DType::kI32:
      static_cast<int32_t*>(base)[i] = ToInteger<int32_t>(value);
      return;
    case DType::kU8:
      static_cast<uint8_t*>(base)[i] = ToInteger<uint8_t>(value);
      return;
    case DType::kBool:
      return Store(static_cast<bool*>(base) + i, value);
  }
}

template <class Wide>
__global__ void ConvertKernel(IndexPlan<2> plan, DType to_dtype, void* to,
                              DType from_dtype, const void* from) {
  for (int64_t i = FirstItem(); i < plan.count; i += ItemStep()) {
    const auto offsets = plan(i);
    StoreWide(to_dtype, to, offsets.at[0],
              LoadWide<Wide>(from_dtype, from, offsets.at[1]));
  }
}

// Bytes of two contiguous tensors of one dtype, whatever devices they are on.
absl::Status CopyBytes(Tensor& dest, const Tensor& source) {
  constexpr const char* kWhat = "copying between devices";
  const auto bytes = static_cast<size_t>(source.byte_size());
  if (bytes == 0) return absl::OkStatus();
  if (!dest.device().is_cpu() && !source.device().is_cpu()) {
    // Ordered after the work enqueued on both devices, and before later work.
    return CudaStatus(
        cudaMemcpyPeer(dest.raw_data(), dest.device().index, source.raw_data(),
                       source.device().index, bytes),
        kWhat);
  }
  const DeviceGuard guard(dest.device().is_cpu() ? source.device()
                                                 : dest.device());
  RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(dest.raw_data(), source.raw_data(),
                                             bytes, cudaMemcpyDefault, kStream),
                             kWhat));
  // Host memory must not change or be freed before the copy has finished.
  return CudaStatus(cudaStreamSynchronize(kStream), kWhat);
}

absl::Status Copy(Tensor& dest, const Tensor& source) {
  if (dest.device() == source.device()) return CopyOnDevice(dest, source);
  // Only dense bytes cross devices; dtype and strides are converted on one
  // side.
  ASSIGN_OR_RETURN(const Tensor dense, source.Contiguous());
  if (dest.is_contiguous() && dest.dtype() == dense.dtype()) {
    return CopyBytes(dest, dense);
  }
  ASSIGN_OR_RETURN(
      Tensor landed,
      Tensor::TryEmpty(dense.shape(), {dense.dtype(), dest.device()}));
  RETURN_IF_ERROR(CopyBytes(landed, dense));
  return dest.CopyFrom(landed);
}

[[maybe_unused]] const bool registered = [] {
  RegisterDeviceCopy(DeviceType::kCuda, Copy);
  return true;
}();

}  // namespace

absl::Status CopyOnDevice(Tensor& dest, const Tensor& source) {
  const auto plan = MakePlan<2>(dest.shape(), {&dest, &source});
  if (plan.count == 0) return absl::OkStatus();
  const DeviceGuard guard(dest.device());
  if (dest.dtype() == source.dtype()) {
    if (dest.shape() == source.shape() && dest.is_contiguous() &&
        source.is_contiguous()) {
      return CudaStatus(cudaMemcpyAsync(dest.raw_data(), source.raw_data(),
                                        static_cast<size_t>(source.byte_size()),
                                        cudaMemcpyDeviceToDevice, kStream),
                        "copying on a device");
    }
    return VisitWord(dest.dtype(), [&]<class Word>() {
      MoveKernel<Word><<<Blocks(plan.count), kThreads, 0, kStream>>>(
          plan, Out<Word>(dest), In<Word>(source));
      return LaunchStatus("copy");
    });
  }
  const auto convert = [&]<class Wide>() {
    ConvertKernel<Wide><<<Blocks(plan.count), kThreads, 0, kStream>>>(
        plan, dest.dtype(), dest.raw_data(), source.dtype(), source.raw_data());
    return LaunchStatus("conversion");
  };
  return IsFloatingPoint(source.dtype())
             ? convert.template operator()<double>()
             : convert.template operator()<int64_t>();
}

}  // namespace hawser::tensor::cuda
