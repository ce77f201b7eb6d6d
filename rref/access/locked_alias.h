#ifndef HAWSER_RREF_ACCESS_LOCKED_ALIAS_H_
#define HAWSER_RREF_ACCESS_LOCKED_ALIAS_H_

#include "absl/status/statusor.h"
#include "rref/access/async_shared_mutex.h"
#include "tensor/tensor.h"

namespace hawser::rref {

// A tensor with the memory and the graph node of `t` that keeps `holder` alive
// as long as its storage is used. A message made from it therefore keeps
// writers of `t` away, without a copy, until the transport has released the
// bytes. Undefined if `t` is undefined.
absl::StatusOr<Tensor> LockedAlias(const Tensor& t,
                                   AsyncSharedMutex::Holder holder);

// A copy of `t` with its graph node. Undefined if `t` is undefined.
absl::StatusOr<Tensor> CopyWithHistory(const Tensor& t);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_ACCESS_LOCKED_ALIAS_H_
