// A strided view of shared storage.

#ifndef HAWSER_TENSOR_TENSOR_H_
#define HAWSER_TENSOR_TENSOR_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/autograd_meta.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/memory/storage.h"
#include "tensor/shape.h"
#include "tensor/tensor_impl.h"

namespace hawser::tensor {

struct TensorOptions {
  DType dtype = DType::kF32;
  Device device = kCpu;
};

// A handle, the size of one pointer, to a tensor; copies of the handle refer to
// the same tensor. A default-constructed Tensor is undefined: defined(),
// is_same(), id() and DebugString() work, methods that return a status return
// kInvalidArgument, and all others abort.
//
// Views share storage and version with their base tensor, and have no
// autograd_meta(). A tensor has one exactly while it requires a gradient. Views
// and copies of it, and writes to it, are then kFailedPrecondition while its
// thread records; autograd/ops/view.h, copy.h, cast.h and in_place.h have the
// operations that are recorded.
//
// Thread-safety: as std::shared_ptr. Reading one tensor from several threads is
// safe; writing its elements or its autograd_meta() needs external
// synchronization.
//
// Errors: kInvalidArgument for mismatched shapes, dimensions and dtypes, naming
// them; kOutOfRange for indices; kResourceExhausted if out of memory.
class Tensor {
 public:
  Tensor() = default;

  // --- New tensors. For trusted shapes and values: these abort on an invalid
  // shape, a missing device, or lack of memory.

  // Elements are uninitialised.
  static Tensor Empty(const Shape& shape, TensorOptions options = {});
  static Tensor Zeros(const Shape& shape, TensorOptions options = {});
  static Tensor Ones(const Shape& shape, TensorOptions options = {});
  static Tensor Full(const Shape& shape, double value,
                     TensorOptions options = {});
  static Tensor Scalar(double value, TensorOptions options = {});
  // 0, 1, ..., n - 1.
  static Tensor Arange(int64_t n, TensorOptions options = {});
  // Copies row-major `values` to the CPU; their count must match `shape`.
  template <class T>
  static Tensor FromVector(std::span<const T> values, const Shape& shape);
  template <class T>
  static Tensor FromVector(const std::vector<T>& values, const Shape& shape);
  template <class T>
  static Tensor FromVector(std::initializer_list<T> values,
                           const Shape& shape) {
    return FromVector(std::span<const T>(values.begin(), values.size()), shape);
  }

  // For untrusted sizes; returns errors instead of aborting.
  static absl::StatusOr<Tensor> TryEmpty(const Shape& shape,
                                         TensorOptions options = {});

  // Returns a view of `storage`, whose first element is `offset` elements from
  // its start. kInvalidArgument if a stride is negative or an element lies
  // outside the storage.
  static absl::StatusOr<Tensor> FromStorage(StoragePtr storage, int64_t offset,
                                            const Shape& shape,
                                            const Strides& strides,
                                            DType dtype);

  // --- What it is.

  bool defined() const { return static_cast<bool>(impl_); }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  // Unique per tensor (not per handle) in this process; 0 if undefined.
  uint64_t id() const { return defined() ? impl_->id() : 0; }

  DType dtype() const { return impl().dtype(); }
  Device device() const { return impl().storage()->device(); }
  const Shape& shape() const { return impl().shape(); }
  const Strides& strides() const { return impl().strides(); }
  int rank() const { return impl().shape().rank(); }
  // The size of dimension `i`, counted from the end if negative.
  int64_t dim(int i) const { return shape()[i < 0 ? i + rank() : i]; }
  int64_t num_elements() const { return impl().num_elements(); }
  // num_elements() times the size of an element.
  int64_t byte_size() const {
    return impl().num_elements() * ItemBytes(impl().dtype());
  }
  // Whether elements are dense in row-major order.
  bool is_contiguous() const { return impl().is_contiguous(); }
  const StoragePtr& storage() const { return impl().storage(); }
  // Whether this is the only handle to the tensor and its storage, so that its
  // memory can be reused. Stays true until this handle is copied or viewed.
  bool is_unshared() const {
    return impl().use_count() == 1 && impl().storage()->use_count() == 1;
  }
  // Offset of the first element from the start of the storage, in elements.
  int64_t storage_offset() const { return impl().storage_offset(); }

  // "f32[2, 3] on cpu".
  std::string ToString() const;
  // ToString() and, if they are few, the elements.
  std::string DebugString() const;

  // --- Elements.

  // The first element, on the tensor's device.
  void* raw_data() { return impl().data(); }
  const void* raw_data() const { return impl().data(); }

  // The first element. Aborts unless dtype() matches `T` and the tensor is on
  // the CPU.
  template <class T>
  T* data() {
    CheckAccess(DTypeOf<T>());
    return static_cast<T*>(impl_->data());
  }
  template <class T>
  const T* data() const {
    CheckAccess(DTypeOf<T>());
    return static_cast<const T*>(impl_->data());
  }

  // The only element, converted to `T`. kInvalidArgument if there is not
  // exactly one.
  template <class T>
  absl::StatusOr<T> item() const;

  // The elements in row-major order. Aborts unless dtype() matches `T`.
  template <class T>
  std::vector<T> ToVector() const;

  // --- Views.

  // Returns a view if the strides allow it, else a copy. One size may be -1,
  // which is inferred.
  absl::StatusOr<Tensor> Reshape(const Shape& shape) const;
  // As Reshape(), but kInvalidArgument if the strides do not allow a view.
  absl::StatusOr<Tensor> View(const Shape& shape) const;
  absl::StatusOr<Tensor> Transpose(int dim0, int dim1) const;
  // Transpose of a matrix.
  absl::StatusOr<Tensor> T() const;
  // Dimension i of the result is dimension `dims[i]` of this.
  absl::StatusOr<Tensor> Permute(std::span<const int> dims) const;
  absl::StatusOr<Tensor> Permute(std::initializer_list<int> dims) const {
    return Permute(std::span<const int>(dims.begin(), dims.size()));
  }
  // Selects indices start, start + step, ... below `end`. Negative bounds count
  // from the end; bounds are clamped to the dimension. `step` >= 1.
  absl::StatusOr<Tensor> Slice(int dim, int64_t start, int64_t end,
                               int64_t step = 1) const;
  // Selects `index` of dimension `dim` and removes the dimension. A negative
  // index counts from the end.
  absl::StatusOr<Tensor> Select(int dim, int64_t index) const;
  // Selects `length` indices from `start`, all of which must exist.
  absl::StatusOr<Tensor> Narrow(int dim, int64_t start, int64_t length) const;
  // Expands dimensions of size 1 to those of `shape`, which may have additional
  // leading dimensions; -1 keeps a size.
  absl::StatusOr<Tensor> Expand(const Shape& shape) const;
  // Removes the dimensions of size 1.
  absl::StatusOr<Tensor> Squeeze() const;
  // Removes dimension `dim` if its size is 1.
  absl::StatusOr<Tensor> Squeeze(int dim) const;
  // Inserts a dimension of size 1 before `dim`, in [-rank - 1, rank].
  absl::StatusOr<Tensor> Unsqueeze(int dim) const;
  // The same elements without autograd_meta().
  Tensor Detach() const;

  // --- Copies.

  // This tensor if it is contiguous, else a contiguous copy.
  absl::StatusOr<Tensor> Contiguous() const;
  // A contiguous copy.
  absl::StatusOr<Tensor> Clone() const;
  // This tensor if it has that dtype, else a contiguous copy, converted as
  // CopyFrom() does.
  absl::StatusOr<Tensor> To(DType dtype) const;
  // This tensor if it is on `device`, else a contiguous copy. A copy from a GPU
  // to the CPU is complete on return.
  absl::StatusOr<Tensor> To(Device device) const;
  // Writes the elements of `source`, of the same shape and any strides, dtype
  // and device, into this tensor, and bumps the version. To a narrower float:
  // nearest even. Float to integer: truncated, clamped to the range, NaN to 0.
  // Integer to narrower integer: low bits. To bool: whether not 0.
  // kInvalidArgument if shapes differ, or elements of this tensor overlap.
  absl::Status CopyFrom(const Tensor& source);

  // --- In-place detection and autograd.

  uint64_t version() const { return impl().storage()->version(); }
  // Every operation that writes elements in place must call this.
  void BumpVersion() const { impl().storage()->BumpVersion(); }

  AutogradMeta* autograd_meta() const { return impl().autograd_meta(); }
  // Replaces the metadata; must not run while another thread uses it.
  void set_autograd_meta(std::unique_ptr<AutogradMeta> meta) const {
    impl().set_autograd_meta(std::move(meta));
  }
  // Sets the metadata unless it is set, and returns the current metadata. May
  // run concurrently with itself and with autograd_meta().
  AutogradMeta* EmplaceAutogradMeta(std::unique_ptr<AutogradMeta> meta) const {
    return impl().EmplaceAutogradMeta(std::move(meta));
  }

 private:
  explicit Tensor(internal::TensorImpl* impl) : impl_(impl) {}

  // A view of this tensor's storage.
  Tensor MakeView(int64_t offset, const Shape& shape,
                  const Strides& strides) const;
  absl::Status CheckDefined(const char* operation) const;
  absl::StatusOr<Tensor> ToRowMajor(DType dtype, Device device) const;

  internal::TensorImpl& impl() const {
    if (!impl_) [[unlikely]]
      DieUndefined();
    return *impl_;
  }
  void CheckAccess(DType dtype) const {
    if (impl().dtype() != dtype || !device().is_cpu()) [[unlikely]] {
      DieAccess(dtype);
    }
  }
  [[noreturn]] static void DieUndefined();
  [[noreturn]] void DieAccess(DType dtype) const;
  [[noreturn]] static void DieCount(size_t count, const Shape& shape);

  RefPtr<internal::TensorImpl> impl_;
};

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// Explicit instantiations for the C++ types of all dtypes.
#define HAWSER_TENSOR_DECLARE(T)                                               \
  extern template Tensor Tensor::FromVector(std::span<const T>, const Shape&); \
  extern template Tensor Tensor::FromVector(const std::vector<T>&,             \
                                            const Shape&);                     \
  extern template absl::StatusOr<T> Tensor::item<T>() const;                   \
  extern template std::vector<T> Tensor::ToVector<T>() const
HAWSER_TENSOR_DECLARE(float);
HAWSER_TENSOR_DECLARE(double);
HAWSER_TENSOR_DECLARE(Half);
HAWSER_TENSOR_DECLARE(BFloat16);
HAWSER_TENSOR_DECLARE(int64_t);
HAWSER_TENSOR_DECLARE(int32_t);
HAWSER_TENSOR_DECLARE(uint8_t);
HAWSER_TENSOR_DECLARE(bool);
#undef HAWSER_TENSOR_DECLARE

}  // namespace hawser::tensor

namespace hawser {
using tensor::Tensor;
}  // namespace hawser

#endif  // HAWSER_TENSOR_TENSOR_H_
