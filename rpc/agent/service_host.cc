#include "rpc/agent/service_host.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "google/protobuf/message_lite.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

async::Future<std::vector<tensor::Tensor>> ServiceHost::CallForTensorsOf(
    const Destination& to, const MethodName& method,
    const google::protobuf::MessageLite& request,
    std::vector<tensor::Tensor> tensors, const MethodCallOptions& options) {
  using Tensors = std::vector<tensor::Tensor>;
  absl::StatusOr<RawMessage> raw =
      internal::SerializeMessage(request, std::move(tensors));
  if (!raw.ok()) return async::MakeReadyFuture<Tensors>(raw.status());
  return CallRawMethod(to, method, *std::move(raw), options)
      .Then([](absl::StatusOr<RawMessage> reply) -> absl::StatusOr<Tensors> {
        if (!reply.ok()) return std::move(reply).status();
        return std::move(reply->tensors);
      });
}

}  // namespace hawser::rpc
