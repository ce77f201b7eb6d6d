#include "tensor/storage.h"

#include <utility>

#include "tensor/device_allocators.h"

namespace hawser::tensor {
namespace {

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
