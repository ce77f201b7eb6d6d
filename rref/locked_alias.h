#ifndef HAWSER_RREF_LOCKED_ALIAS_H_
#define HAWSER_RREF_LOCKED_ALIAS_H_

#include "absl/status/statusor.h"
#include "rref/async_shared_mutex.h"
#include "tensor/tensor.h"

namespace hawser::rref {

// A tensor on the same memory as `t`, and with the same place in the graph,
// that keeps `holder` as long as anybody holds its storage. A message made from
// it keeps writers of `t` away until the transport has let go of the bytes,
// without a copy. Undefined if `t` is.
absl::StatusOr<Tensor> LockedAlias(const Tensor& t,
                                   AsyncSharedMutex::Holder holder);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_LOCKED_ALIAS_H_
