#include "tensor/memory/storage.h"

#include <utility>

#include "async/check.h"
#include "tensor/memory/cpu_allocator.h"
#include "tensor/memory/device_allocators.h"

namespace hawser::tensor {
namespace {

// Host memory. Both the object and its bytes come from the caching allocator,
// since every tensor creates one.
class HostStorage final : public Storage {
 public:
  HostStorage(void* data, size_t bytes) : Storage(data, bytes, kCpu) {}
  ~HostStorage() override { internal::FreeHostBlock(data(), bytes()); }

  static void* operator new(size_t bytes) {
    void* const block = internal::AllocateHostBlock(bytes);
    HAWSER_CHECK(block != nullptr) << "out of host memory";
    return block;
  }
  static void operator delete(void* block, size_t bytes) {
    internal::FreeHostBlock(block, bytes);
  }
};

class AllocatedStorage final : public Storage {
 public:
  AllocatedStorage(void* data, size_t bytes, Device device,
                   Allocator* allocator)
      : Storage(data, bytes, device), allocator_(allocator) {}
  ~AllocatedStorage() override { allocator_->Deallocate(data(), bytes()); }

 private:
  Allocator* const allocator_;
};

class ForeignStorage final : public Storage {
 public:
  ForeignStorage(void* data, size_t bytes, Device device,
                 absl::AnyInvocable<void() &&> release)
      : Storage(data, bytes, device), release_(std::move(release)) {}
  ~ForeignStorage() override { std::move(release_)(); }

 private:
  absl::AnyInvocable<void() &&> release_;
};

}  // namespace

absl::StatusOr<StoragePtr> Storage::Allocate(size_t bytes, Device device) {
  if (device.is_cpu()) {
    if (void* const data = internal::AllocateHostBlock(bytes)) {
      return StoragePtr(new HostStorage(data, bytes));
    }
  }
  absl::StatusOr<Allocator*> allocator = AllocatorFor(device);
  if (!allocator.ok()) return allocator.status();
  absl::StatusOr<void*> data = (*allocator)->Allocate(bytes);
  if (!data.ok()) return data.status();
  return StoragePtr(new AllocatedStorage(*data, bytes, device, *allocator));
}

StoragePtr Storage::Wrap(void* data, size_t bytes, Device device,
                         absl::AnyInvocable<void() &&> release) {
  return StoragePtr(
      new ForeignStorage(data, bytes, device, std::move(release)));
}

}  // namespace hawser::tensor
