// Convolution: oneDNN for f32 and bf16, matrix products of patches for f64.
// 16-bit types without hardware support are computed in f32.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cpu/conv2d_sizes.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/im2col_conv2d.h"
#include "tensor/backend/cpu/onednn_conv2d.h"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {
namespace {

// Computes in f64. The tensors are dense.
void ConvolveF64(ConvPass pass, const Conv2dSizes& sizes, const Tensor& input0,
                 const Tensor& input1, const Tensor& bias, Tensor& output) {
  const double* const a = input0.data<double>();
  const double* const b = input1.data<double>();
  double* const out = output.data<double>();
  switch (pass) {
    case ConvPass::kForward:
      return Conv2dF64(sizes, a, b,
                       bias.defined() ? bias.data<double>() : nullptr, out);
    case ConvPass::kInputGrad:
      return Conv2dInputGradF64(sizes, a, b, out);
    case ConvPass::kWeightGrad:
      return Conv2dWeightGradF64(sizes, a, b, out);
  }
}

// The compute dtype for a `dtype` that is not supported directly.
DType WiderType(DType dtype) {
  return dtype == DType::kF32 ? DType::kF64 : DType::kF32;
}

absl::Status Convolve(ConvPass pass, const Conv2dSizes& sizes,
                      const Tensor& input0, const Tensor& input1,
                      const Tensor& bias, Tensor& output) {
  ASSIGN_OR_RETURN(const Tensor a, input0.Contiguous());
  ASSIGN_OR_RETURN(const Tensor b, input1.Contiguous());
  Tensor c;
  if (bias.defined()) {
    ASSIGN_OR_RETURN(c, bias.Contiguous());
  }
  const DType dtype = output.dtype();
  if (dtype == DType::kF64) {
    ConvolveF64(pass, sizes, a, b, c, output);
    return absl::OkStatus();
  }
  if (dtype != DType::kF16 && !sizes.empty()) {
    ASSIGN_OR_RETURN(
        const bool done,
        ConvolveOneDnn(pass, dtype, sizes, a.raw_data(), b.raw_data(),
                       c.defined() ? c.raw_data() : nullptr,
                       output.raw_data()));
    if (done) return absl::OkStatus();
  }
  const DType wide = WiderType(dtype);
  ASSIGN_OR_RETURN(const Tensor wide_a, a.To(wide));
  ASSIGN_OR_RETURN(const Tensor wide_b, b.To(wide));
  Tensor wide_c;
  if (c.defined()) {
    ASSIGN_OR_RETURN(wide_c, c.To(wide));
  }
  ASSIGN_OR_RETURN(Tensor wide_out, Tensor::TryEmpty(output.shape(), {wide}));
  RETURN_IF_ERROR(Convolve(pass, sizes, wide_a, wide_b, wide_c, wide_out));
  return output.CopyFrom(wide_out);
}

}  // namespace

absl::Status CpuBackend::Conv2d(const Tensor& x, const Tensor& w,
                                const Tensor& bias,
                                const Conv2dOptions& options, Tensor& y) {
  return Convolve(ConvPass::kForward,
                  Conv2dSizes::Of(x.shape(), w.shape(), y.shape(), options), x,
                  w, bias, y);
}

absl::Status CpuBackend::Conv2dInputGrad(const Tensor& dy, const Tensor& w,
                                         const Conv2dOptions& options,
                                         Tensor& dx) {
  return Convolve(ConvPass::kInputGrad,
                  Conv2dSizes::Of(dx.shape(), w.shape(), dy.shape(), options),
                  dy, w, Tensor(), dx);
}

absl::Status CpuBackend::Conv2dWeightGrad(const Tensor& dy, const Tensor& x,
                                          const Conv2dOptions& options,
                                          Tensor& dw) {
  return Convolve(ConvPass::kWeightGrad,
                  Conv2dSizes::Of(x.shape(), dw.shape(), dy.shape(), options),
                  dy, x, Tensor(), dw);
}

}  // namespace hawser::tensor::cpu
