// The members of Tensor that make new ones.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "tensor/internal/convert.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

Tensor OrDie(absl::StatusOr<Tensor> tensor) {
  HAWSER_CHECK(tensor.ok()) << tensor.status();
  return *std::move(tensor);
}

// Makes a tensor of `options` from one that `make_on_cpu(dtype)` returns.
template <class MakeOnCpu>
Tensor MakeOn(TensorOptions options, MakeOnCpu make_on_cpu) {
  Tensor tensor = make_on_cpu(options.dtype);
  if (options.device.is_cpu()) return tensor;
  return OrDie(tensor.To(options.device));
}

}  // namespace

absl::StatusOr<Tensor> Tensor::TryEmpty(const Shape& shape,
                                        TensorOptions options) {
  ASSIGN_OR_RETURN(const int64_t num_elements, shape.CheckedNumElements());
  int64_t bytes;
  if (__builtin_mul_overflow(num_elements, ItemBytes(options.dtype), &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape ", shape.ToString(), " has more bytes than an int64 counts"));
  }
  ASSIGN_OR_RETURN(
      StoragePtr storage,
      Storage::Allocate(static_cast<size_t>(bytes), options.device));
  return Tensor(new internal::TensorImpl(
      std::move(storage), /*storage_offset=*/0, shape, Strides::RowMajor(shape),
      num_elements, options.dtype, /*is_contiguous=*/true));
}

Tensor Tensor::Empty(const Shape& shape, TensorOptions options) {
  return OrDie(TryEmpty(shape, options));
}

Tensor Tensor::Zeros(const Shape& shape, TensorOptions options) {
  return MakeOn(options, [&](DType dtype) {
    Tensor tensor = Empty(shape, {.dtype = dtype});
    std::memset(tensor.raw_data(), 0, tensor.byte_size());
    return tensor;
  });
}

Tensor Tensor::Ones(const Shape& shape, TensorOptions options) {
  return Full(shape, 1, options);
}

Tensor Tensor::Full(const Shape& shape, double value, TensorOptions options) {
  return MakeOn(options, [&](DType dtype) {
    Tensor tensor = Empty(shape, {.dtype = dtype});
    VisitDType(dtype, [&]<class Element>() {
      std::fill_n(tensor.data<Element>(), tensor.num_elements(),
                  internal::ConvertElement<Element>(value));
    });
    return tensor;
  });
}

Tensor Tensor::Scalar(double value, TensorOptions options) {
  return Full({}, value, options);
}

Tensor Tensor::Arange(int64_t n, TensorOptions options) {
  return MakeOn(options, [&](DType dtype) {
    Tensor tensor = Empty({n}, {.dtype = dtype});
    VisitDType(dtype, [&]<class Element>() {
      Element* const elements = tensor.data<Element>();
      for (int64_t i = 0; i < n; ++i) {
        elements[i] = internal::ConvertElement<Element>(i);
      }
    });
    return tensor;
  });
}

template <class Element>
Tensor Tensor::FromVector(std::span<const Element> values, const Shape& shape) {
  Tensor tensor = Empty(shape, {.dtype = DTypeOf<Element>()});
  if (values.size() != static_cast<size_t>(tensor.num_elements())) {
    DieCount(values.size(), shape);
  }
  std::copy(values.begin(), values.end(), tensor.data<Element>());
  return tensor;
}

template <class Element>
Tensor Tensor::FromVector(const std::vector<Element>& values,
                          const Shape& shape) {
  Tensor tensor = Empty(shape, {.dtype = DTypeOf<Element>()});
  if (values.size() != static_cast<size_t>(tensor.num_elements())) {
    DieCount(values.size(), shape);
  }
  std::copy(values.begin(), values.end(), tensor.data<Element>());
  return tensor;
}

#define HAWSER_TENSOR_DEFINE(T)                                         \
  template Tensor Tensor::FromVector(std::span<const T>, const Shape&); \
  template Tensor Tensor::FromVector(const std::vector<T>&, const Shape&)
HAWSER_TENSOR_DEFINE(float);
HAWSER_TENSOR_DEFINE(double);
HAWSER_TENSOR_DEFINE(Half);
HAWSER_TENSOR_DEFINE(BFloat16);
HAWSER_TENSOR_DEFINE(int64_t);
HAWSER_TENSOR_DEFINE(int32_t);
HAWSER_TENSOR_DEFINE(uint8_t);
HAWSER_TENSOR_DEFINE(bool);
#undef HAWSER_TENSOR_DEFINE

}  // namespace hawser::tensor
