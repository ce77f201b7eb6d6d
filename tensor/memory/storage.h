// Memory shared by a tensor and its views.

#ifndef HAWSER_TENSOR_MEMORY_STORAGE_H_
#define HAWSER_TENSOR_MEMORY_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "tensor/device.h"
#include "tensor/memory/ref_ptr.h"

namespace hawser::tensor {

class Storage;
using StoragePtr = RefPtr<Storage>;

// A block of memory on one device, and the count of its in-place changes.
//
// The count and the handles are thread-safe; users must synchronize access to
// the bytes.
class Storage : public RefCounted {
 public:
  // Allocates `bytes` uninitialised bytes, aligned to kAllocationAlignment,
  // from the allocator of `device`. Returns the allocator's errors.
  static absl::StatusOr<StoragePtr> Allocate(size_t bytes, Device device);

  // Wraps memory owned elsewhere, such as by a DLPack tensor or a mapped file.
  // `release` runs once, in the thread that drops the last handle.
  static StoragePtr Wrap(void* data, size_t bytes, Device device,
                         absl::AnyInvocable<void() &&> release);

  virtual ~Storage() = default;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  // Changes whenever an operation writes to the bytes in place.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void BumpVersion() { version_.fetch_add(1, std::memory_order_relaxed); }

 protected:
  Storage(void* data, size_t bytes, Device device)
      : data_(data), bytes_(bytes), device_(device) {}

 private:
  void* const data_;
  const size_t bytes_;
  const Device device_;
  std::atomic<uint64_t> version_{0};
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_MEMORY_STORAGE_H_
