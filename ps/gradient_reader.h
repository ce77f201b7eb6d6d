// Gradients of a request, read where the transport has them.

#ifndef HAWSER_PS_GRADIENT_READER_H_
#define HAWSER_PS_GRADIENT_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/half_convert.h"

namespace hawser::ps {

// Reads rows of gradients in f32, through memory that is used again.
//
// Thread-compatible.
// `tensor` is f32, f16 or bf16 [n, width] and outlives the reader.
class GradientReader {
 public:
  GradientReader(const rpc::LazyTensor& tensor, size_t width)
      : tensor_(tensor), width_(width) {}

  // Valid until the next call.
  absl::StatusOr<const float*> Read(size_t begin, size_t end) {
    const size_t count = (end - begin) * width_;
    wide_.resize(count);
    const size_t item = tensor::ItemBytes(tensor_.dtype());
    if (tensor_.dtype() == tensor::DType::kF32) {
      RETURN_IF_ERROR(tensor_.ReadInto(
          begin * width_ * item, std::as_writable_bytes(std::span(wide_))));
      return wide_.data();
    }
    narrow_.resize(count);
    RETURN_IF_ERROR(tensor_.ReadInto(
        begin * width_ * item, std::as_writable_bytes(std::span(narrow_))));
    const auto elements = static_cast<int64_t>(count);
    if (tensor_.dtype() == tensor::DType::kF16) {
      tensor::HalfToFloat(reinterpret_cast<const tensor::Half*>(narrow_.data()),
                          wide_.data(), elements);
    } else {
      tensor::BFloat16ToFloat(
          reinterpret_cast<const tensor::BFloat16*>(narrow_.data()),
          wide_.data(), elements);
    }
    return wide_.data();
  }

 private:
  const rpc::LazyTensor& tensor_;
  const size_t width_;
  std::vector<float> wide_;
  std::vector<uint16_t> narrow_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_GRADIENT_READER_H_
