#include "rref/access/locked_alias.h"

#include <utility>

#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/variable.h"
#include "tensor/memory/storage.h"

namespace hawser::rref {
namespace {

void ShareHistory(const Tensor& from, Tensor& to) {
  if (const autograd::Edge edge = autograd::GradEdge(from)) {
    autograd::SetHistory(to, edge.node, edge.input_index);
  }
}

}  // namespace

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
  ShareHistory(t, alias);
  return alias;
}

absl::StatusOr<Tensor> CopyWithHistory(const Tensor& t) {
  if (!t.defined()) return Tensor();
  const autograd::NoGradGuard no_grad;
  ASSIGN_OR_RETURN(Tensor copy, t.Clone());
  ShareHistory(t, copy);
  return copy;
}

}  // namespace hawser::rref
