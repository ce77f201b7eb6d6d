// Copies of elements on one CUDA device.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_DEVICE_COPY_H_
#define HAWSER_TENSOR_BACKEND_CUDA_DEVICE_COPY_H_

#include "absl/status/status.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

// Writes the elements of `source` to `dest`, of any strides and dtypes;
// `source` broadcasts to `dest`. Enqueued on the device's stream.
absl::Status CopyOnDevice(Tensor& dest, const Tensor& source);

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_DEVICE_COPY_H_
