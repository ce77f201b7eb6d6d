// Matrix products by cuBLAS, for kernels built on them.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_GEMM_H_
#define HAWSER_TENSOR_BACKEND_CUDA_GEMM_H_

#include "absl/status/status.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

// out = a b + beta out, as Backend::MatMul, except that `out` may have any
// batch strides if its matrices are dense.
absl::Status GemmBatches(const Tensor& a, const Tensor& b, double beta,
                         Tensor& out);

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_GEMM_H_
