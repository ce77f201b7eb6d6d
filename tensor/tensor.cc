#include "tensor/tensor.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "tensor/internal/convert.h"

namespace hawser::tensor {
namespace {

constexpr int64_t kMostPrintedElements = 64;

// One past the largest offset of an element, from the first one; 0 if there are
// none. Nothing if a stride is negative or the offset exceeds an int64.
std::optional<int64_t> ExtentOf(const Shape& shape, const Strides& strides) {
  int64_t last = 0;
  bool empty = false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) {
      empty = true;
      continue;
    }
    int64_t reach;
    if (strides[i] < 0 ||
        __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  if (empty) return 0;
  int64_t extent;
  if (__builtin_add_overflow(last, 1, &extent)) return std::nullopt;
  return extent;
}

}  // namespace

absl::StatusOr<Tensor> Tensor::FromStorage(StoragePtr storage, int64_t offset,
                                           const Shape& shape,
                                           const Strides& strides,
                                           DType dtype) {
  const auto invalid = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("view of shape ", shape.ToString(), ", strides ",
                     strides.ToString(), ", offset ", offset, ": ", why));
  };
  if (!storage) return invalid("no storage");
  if (shape.rank() != strides.rank()) return invalid("ranks differ");
  ASSIGN_OR_RETURN(const int64_t num_elements, shape.CheckedNumElements());
  const std::optional<int64_t> extent = ExtentOf(shape, strides);
  if (!extent) return invalid("a stride is negative or too large");
  const int64_t capacity =
      static_cast<int64_t>(storage->bytes()) / ItemBytes(dtype);
  int64_t end;
  if (offset < 0 || __builtin_add_overflow(offset, *extent, &end) ||
      end > capacity) {
    return invalid(
        absl::StrCat("reaches beyond a storage of ", capacity, " elements"));
  }
  return Tensor(new internal::TensorImpl(std::move(storage), offset, shape,
                                         strides, num_elements, dtype,
                                         IsRowMajor(shape, strides)));
}

Tensor Tensor::MakeView(int64_t offset, const Shape& shape,
                        const Strides& strides) const {
  return Tensor(new internal::TensorImpl(storage(), offset, shape, strides,
                                         shape.num_elements(), dtype(),
                                         IsRowMajor(shape, strides)));
}

Tensor Tensor::Detach() const {
  const internal::TensorImpl& tensor = impl();
  return Tensor(new internal::TensorImpl(
      tensor.storage(), tensor.storage_offset(), tensor.shape(),
      tensor.strides(), tensor.num_elements(), tensor.dtype(),
      tensor.is_contiguous()));
}

std::string Tensor::ToString() const {
  if (!defined()) return "undefined tensor";
  const std::string_view name = DTypeName(dtype());
  return absl::StrCat(absl::string_view(name.data(), name.size()),
                      shape().ToString(), " on ", device().ToString());
}

std::string Tensor::DebugString() const {
  std::string text = ToString();
  if (!defined() || num_elements() > kMostPrintedElements) return text;
  const absl::StatusOr<Tensor> doubles = ToRowMajor(DType::kF64, device());
  if (!doubles.ok()) return text;
  text += " {";
  absl::string_view separator = "";
  for (const double value : doubles->ToVector<double>()) {
    absl::StrAppend(&text, separator, value);
    separator = ", ";
  }
  return text + "}";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.DebugString();
}

absl::Status Tensor::CheckDefined(const char* operation) const {
  if (defined()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(operation, " of an undefined tensor"));
}

void Tensor::DieUndefined() {
  HAWSER_CHECK(false) << "use of an undefined tensor";
  std::abort();
}

void Tensor::DieAccess(DType dtype) const {
  HAWSER_CHECK(false) << "access to " << ToString() << " as " << dtype
                      << " in host memory";
  std::abort();
}

void Tensor::DieCount(size_t count, const Shape& shape) {
  HAWSER_CHECK(false) << count << " values for shape " << shape;
  std::abort();
}

template <class T>
absl::StatusOr<T> Tensor::item() const {
  RETURN_IF_ERROR(CheckDefined("item()"));
  if (num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("item() of ", ToString(), ", which is not one element"));
  }
  ASSIGN_OR_RETURN(const Tensor here, ToRowMajor(dtype(), kCpu));
  T value;
  internal::ConvertRow(DTypeOf<T>(), dtype())(here.raw_data(), 1, &value, 1, 1);
  return value;
}

template <class T>
std::vector<T> Tensor::ToVector() const {
  const absl::StatusOr<Tensor> here = ToRowMajor(dtype(), kCpu);
  HAWSER_CHECK(here.ok()) << here.status();
  const T* const begin = here->template data<T>();
  return std::vector<T>(begin, begin + num_elements());
}

#define HAWSER_TENSOR_DEFINE(T)                       \
  template absl::StatusOr<T> Tensor::item<T>() const; \
  template std::vector<T> Tensor::ToVector<T>() const
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
