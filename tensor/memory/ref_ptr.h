// Intrusive reference counting: a handle the size of one pointer.

#ifndef HAWSER_TENSOR_MEMORY_REF_PTR_H_
#define HAWSER_TENSOR_MEMORY_REF_PTR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hawser::tensor {

// Base of objects that RefPtr counts. Starts with a count of 0.
class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  // Number of handles; exact only while no other thread creates or drops one.
  int64_t use_count() const { return count_.load(std::memory_order_acquire); }

 protected:
  RefCounted() = default;
  ~RefCounted() = default;

 private:
  template <class T>
  friend class RefPtr;

  void Ref() const { count_.fetch_add(1, std::memory_order_relaxed); }

  // Returns whether that was the last handle. If only one handle exists, no
  // atomic read-modify-write is needed, since no other thread can add one.
  bool Unref() const {
    return count_.load(std::memory_order_acquire) == 1 ||
           count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  mutable std::atomic<int64_t> count_{0};
};

// Shared ownership of a `T` derived from RefCounted. As thread-safe as
// std::shared_ptr: distinct handles of one object may be used concurrently.
template <class T>
class RefPtr {
 public:
  RefPtr() = default;
  RefPtr(std::nullptr_t) {}
  explicit RefPtr(T* object) : object_(object) {
    if (object_ != nullptr) object_->Ref();
  }
  RefPtr(const RefPtr& other) : RefPtr(other.object_) {}
  RefPtr(RefPtr&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)) {}
  RefPtr& operator=(const RefPtr& other) {
    RefPtr(other).swap(*this);
    return *this;
  }
  RefPtr& operator=(RefPtr&& other) noexcept {
    RefPtr(std::move(other)).swap(*this);
    return *this;
  }
  ~RefPtr() {
    if (object_ != nullptr && object_->Unref()) delete object_;
  }

  void swap(RefPtr& other) noexcept { std::swap(object_, other.object_); }
  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const RefPtr& a, const RefPtr& b) {
    return a.object_ == b.object_;
  }

 private:
  T* object_ = nullptr;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_MEMORY_REF_PTR_H_
