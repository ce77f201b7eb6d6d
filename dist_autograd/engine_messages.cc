// Recording of messages between workers in a context.

#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/variable.h"
#include "dist_autograd/current_context.h"
#include "dist_autograd/engine.h"

namespace hawser::dist_autograd {

absl::StatusOr<std::optional<rpc::AutogradMetadata>> Engine::OnSend(
    const rpc::WorkerInfo& peer, std::span<const Tensor> tensors) {
  const std::shared_ptr<Context> context = current_context();
  // Also if the message has no such tensors: its reply, or calls made by its
  // handler, may have them.
  if (context == nullptr || !context->AddTarget(peer)) {
    // No context, or one that has ended: the message is not recorded.
    if (const std::shared_ptr<Context>* ended = kCurrentContext.get()) {
      RETURN_IF_ERROR(contexts_.CheckCreator(**ended));
    }
    return std::nullopt;
  }
  rpc::AutogradMetadata metadata;
  metadata.context_id = ToNumber(context->id());
  metadata.context_incarnation = context->creator().incarnation;
  metadata.requires_grad.resize(tensors.size());
  if (!autograd::GradEnabled()) return metadata;

  std::vector<Tensor> flagged;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!autograd::RequiresGrad(tensors[i])) continue;
    metadata.requires_grad[i] = true;
    flagged.push_back(tensors[i]);
  }
  if (flagged.empty()) return metadata;
  ASSIGN_OR_RETURN(const AutogradMessageId message, contexts_.NextMessageId());
  context->RecordSend(message, peer, flagged);
  metadata.message_id = ToNumber(message);
  return metadata;
}

absl::Status Engine::RecordReceived(Context& context,
                                    const rpc::WorkerInfo& peer,
                                    const rpc::AutogradMetadata& metadata,
                                    std::span<Tensor> tensors) {
  if (metadata.message_id == 0) return absl::OkStatus();
  const AutogradMessageId message{metadata.message_id};
  if (CreatorOf(message) != peer.id.value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("autograd message ", ToString(message),
                     " came from worker '", peer.name, "'"));
  }
  std::vector<Tensor> flagged;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!metadata.requires_grad[i]) continue;
    if (!tensor::IsFloatingPoint(tensors[i].dtype())) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker '", peer.name, "' sent a tensor of dtype ",
                       std::string(tensor::DTypeName(tensors[i].dtype())),
                       " as one that requires a gradient"));
    }
    flagged.push_back(tensors[i]);
  }
  if (!flagged.empty()) context.RecordRecv(message, peer, flagged);
  return absl::OkStatus();
}

absl::StatusOr<async::TaskContext> Engine::OnReceiveRequest(
    const rpc::WorkerInfo& peer, const rpc::AutogradMetadata& metadata,
    std::span<Tensor> tensors) {
  ASSIGN_OR_RETURN(std::shared_ptr<Context> context,
                   contexts_.FindOrCreate(ContextId{metadata.context_id},
                                          metadata.context_incarnation, peer));
  // The context ended before the message arrived, so it is not recorded.
  if (context == nullptr) return async::TaskContext::Capture();
  RETURN_IF_ERROR(RecordReceived(*context, peer, metadata, tensors));
  CurrentContext scope(std::move(context));
  return async::TaskContext::Capture();
}

absl::Status Engine::OnReceiveReply(const rpc::WorkerInfo& peer,
                                    const rpc::AutogradMetadata& metadata,
                                    std::span<Tensor> tensors) {
  absl::StatusOr<std::shared_ptr<Context>> context =
      contexts_.Find(ContextId{metadata.context_id});
  if (!context.ok() ||
      (*context)->creator().incarnation != metadata.context_incarnation) {
    return absl::OkStatus();
  }
  return RecordReceived(**context, peer, metadata, tensors);
}

}  // namespace hawser::dist_autograd
