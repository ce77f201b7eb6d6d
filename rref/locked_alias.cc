#include "rref/locked_alias.h"

#include <utility>

#include "async/status_macros.h"
#include "autograd/variable.h"
#include "tensor/memory/storage.h"

namespace hawser::rref {

absl::StatusOr<Tensor> LockedAlias(const Tensor& t,
                                   AsyncSharedMutex::Holder holder) {
  if (!t.defined()) return Tensor();
  const tensor::StoragePtr& storage = t.storage();
  // Destruction releases the lock before the memory that it guards.
  tensor::StoragePtr wrapped = tensor::Storage::Wrap(
      storage->data(), storage->bytes(), storage->device(),
      [kept = storage, held = std::move(holder)]() mutable { held.reset(); });
  ASSIGN_OR_RETURN(Tensor alias,
                   Tensor::FromStorage(std::move(wrapped), t.storage_offset(),
                                       t.shape(), t.strides(), t.dtype()));
  if (const autograd::Edge edge = autograd::GradEdge(t)) {
    autograd::SetHistory(alias, edge.node, edge.input_index);
  }
  return alias;
}

}  // namespace hawser::rref
