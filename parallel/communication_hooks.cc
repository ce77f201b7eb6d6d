#include "parallel/communication_hooks.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "collectives/reduce_op.h"

namespace hawser::parallel {

using collectives::ProcessGroup;
using collectives::ReduceOp;
using collectives::Work;

CommunicationHook AllReduceHook() {
  return [](ProcessGroup& group, const GradientBucket& bucket) {
    return group.AllReduceAsync(bucket.flat, ReduceOp::kAverage);
  };
}

CommunicationHook CompressHook(tensor::DType dtype) {
  return [dtype](ProcessGroup& group, const GradientBucket& bucket) -> Work {
    absl::StatusOr<Tensor> narrow = bucket.flat.To(dtype);
    if (!narrow.ok()) return async::MakeReadyFuture<void>(narrow.status());
    return group.AllReduceAsync(*narrow, ReduceOp::kAverage)
        .Then([flat = bucket.flat,
               narrow = *narrow](const absl::Status& status) mutable {
          RETURN_IF_ERROR(status);
          return flat.CopyFrom(narrow);
        });
  };
}

}  // namespace hawser::parallel
