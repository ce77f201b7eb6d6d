#include "tensor/tensor_impl.h"

#include "async/check.h"
#include "tensor/memory/cpu_allocator.h"

namespace hawser::tensor::internal {

void* TensorImpl::operator new(size_t bytes) {
  void* const block = AllocateHostBlock(bytes);
  HAWSER_CHECK(block != nullptr) << "out of host memory";
  return block;
}

void TensorImpl::operator delete(void* block, size_t bytes) {
  FreeHostBlock(block, bytes);
}

uint64_t TensorImpl::AssignId() const {
  static std::atomic<uint64_t> last_id{0};
  const uint64_t fresh = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  uint64_t id = 0;
  return id_.compare_exchange_strong(id, fresh, std::memory_order_relaxed)
             ? fresh
             : id;
}

}  // namespace hawser::tensor::internal
