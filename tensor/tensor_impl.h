// State shared by the handles of one tensor.

#ifndef HAWSER_TENSOR_TENSOR_IMPL_H_
#define HAWSER_TENSOR_TENSOR_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "tensor/autograd_meta.h"
#include "tensor/dtype.h"
#include "tensor/memory/ref_ptr.h"
#include "tensor/memory/storage.h"
#include "tensor/shape.h"

namespace hawser::tensor::internal {

// Constant after construction, except for the autograd metadata. Use
// tensor/tensor.h.
class TensorImpl final : public RefCounted {
 public:
  // `num_elements` must be that of `shape`, and `is_contiguous` must say
  // whether `strides` are row-major. The elements must lie within `storage`.
  TensorImpl(StoragePtr storage, int64_t storage_offset, const Shape& shape,
             const Strides& strides, int64_t num_elements, DType dtype,
             bool is_contiguous)
      : storage_(std::move(storage)),
        data_(static_cast<std::byte*>(storage_->data()) +
              storage_offset * ItemBytes(dtype)),
        storage_offset_(storage_offset),
        num_elements_(num_elements),
        dtype_(dtype),
        is_contiguous_(is_contiguous),
        shape_(shape),
        strides_(strides) {}
  ~TensorImpl() { delete meta_.load(std::memory_order_relaxed); }

  // Small blocks come from the CPU allocator, whose thread caches are faster
  // than the heap when many tensors live at once.
  static void* operator new(size_t bytes);
  static void operator delete(void* block, size_t bytes);

  const StoragePtr& storage() const { return storage_; }
  void* data() const { return data_; }
  int64_t storage_offset() const { return storage_offset_; }
  int64_t num_elements() const { return num_elements_; }
  DType dtype() const { return dtype_; }
  bool is_contiguous() const { return is_contiguous_; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }

  uint64_t id() const {
    const uint64_t id = id_.load(std::memory_order_relaxed);
    return id != 0 ? id : AssignId();
  }

  AutogradMeta* autograd_meta() const {
    return meta_.load(std::memory_order_acquire);
  }
  void set_autograd_meta(std::unique_ptr<AutogradMeta> meta) {
    delete meta_.exchange(meta.release(), std::memory_order_acq_rel);
  }
  AutogradMeta* EmplaceAutogradMeta(std::unique_ptr<AutogradMeta> meta) {
    AutogradMeta* existing = nullptr;
    if (!meta_.compare_exchange_strong(existing, meta.get(),
                                       std::memory_order_acq_rel)) {
      return existing;
    }
    return meta.release();
  }

 private:
  // Called on first use, because most tensors need no id.
  uint64_t AssignId() const;

  const StoragePtr storage_;
  void* const data_;
  const int64_t storage_offset_;
  const int64_t num_elements_;
  const DType dtype_;
  const bool is_contiguous_;
  mutable std::atomic<uint64_t> id_{0};
  std::atomic<AutogradMeta*> meta_{nullptr};
  const Shape shape_;
  const Strides strides_;
};

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_TENSOR_IMPL_H_
