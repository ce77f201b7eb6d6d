// Copies of a value for its users: both ends.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rref/locked_alias.h"
#include "rref/protocol.h"

namespace hawser::rref {
namespace {

using FetchReply = rpc::Message<v1::RRefFetchReply>;

// Writes `object` for `peer`. Tensors hold `lock` until they have been sent.
absl::StatusOr<FetchReply> EncodeValue(rpc::Agent& agent,
                                       const rpc::WorkerInfo& peer,
                                       const rpc::RetainedValue& object,
                                       ValueLock::Holder lock) {
  if (object.type->encode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of type ", object.type->name,
                     " cannot be sent: use it where it lives"));
  }
  rpc::Encoder encoder(&agent, &peer);
  RETURN_IF_ERROR(object.type->encode(encoder, object.value.get()));
  FetchReply reply;
  reply.body.set_type_name(object.type->name);
  reply.body.set_value(encoder.TakeValues());
  reply.tensors = encoder.TakeTensors();
  for (Tensor& t : reply.tensors) {
    ASSIGN_OR_RETURN(t, LockedAlias(t, lock));
  }
  return reply;
}

}  // namespace

async::Future<FetchReply> Protocol::HandleFetch(
    const rpc::MethodCall& call, rpc::Message<v1::RRefFetchRequest> request) {
  absl::StatusOr<std::shared_ptr<OwnerValue>> found =
      FindValue(request.body.rref());
  if (!found.ok()) return async::MakeReadyFuture<FetchReply>(found.status());
  // Before the creation the future waits, not a thread.
  const std::shared_ptr<OwnerValue> value = *std::move(found);
  return value->future().Then(
      [self = shared_from_this(), value,
       peer = call.peer](absl::StatusOr<rpc::RetainedValue> object)
          -> async::Future<FetchReply> {
        if (!object.ok()) {
          return async::MakeReadyFuture<FetchReply>(object.status());
        }
        return value->lock().AcquireShared().Then(
            [self, value, peer, object = *std::move(object)](
                absl::StatusOr<ValueLock::Holder> lock)
                -> absl::StatusOr<FetchReply> {
              RETURN_IF_ERROR(lock);
              const AgentHandle::Use agent = self->agent_.Acquire();
              if (!agent) {
                return absl::UnavailableError("the worker is shutting down");
              }
              return EncodeValue(*agent, peer, object, *std::move(lock));
            });
      });
}

void Protocol::Fetch(const Reference& reference, std::string_view type_name,
                     std::optional<absl::Duration> timeout,
                     Reference::Fetched done) {
  if (absl::Status status = users_.Check(reference.fork()); !status.ok()) {
    std::move(done)(std::move(status));
    return;
  }
  const AgentHandle::Use agent = agent_.Acquire();
  if (!agent) {
    std::move(done)(absl::FailedPreconditionError("the worker was shut down"));
    return;
  }
  v1::RRefFetchRequest request;
  *request.mutable_rref() = ToProto(reference.id());
  rpc::MethodCallOptions options;
  options.timeout = timeout;
  options.message_hook = true;
  async::Future<FetchReply> reply = agent->CallMethod<v1::RRefFetchReply>(
      reference.owner(), "hawser.v1.RRefService.Fetch", request, {}, options);
  const async::Future<void>& confirmed = reference.confirmed();
  if (!confirmed.ready() || !confirmed.result().ok()) {
    // A creation that fails, or failed since the check, leaves no value.
    confirmed.OnReady([reply](const absl::Status& status) {
      if (!status.ok()) reply.Cancel();
    });
  }
  std::move(reply).OnReady(
      [self = shared_from_this(), fork = reference.fork(),
       owner = reference.owner(), type = std::string(type_name),
       done =
           std::move(done)](const absl::StatusOr<FetchReply>& result) mutable {
        if (!result.ok()) {
          const absl::Status known = self->users_.Check(fork);
          std::move(done)(known.ok() ? result.status() : known);
          return;
        }
        if (result->body.type_name() != type) {
          std::move(done)(absl::InvalidArgumentError(absl::StrCat(
              "a reference to ", type, " names a value of type ",
              result->body.type_name(), " on worker '", owner.name, "'")));
          return;
        }
        const AgentHandle::Use use = self->agent_.Acquire();
        rpc::Decoder decoder(use.get(), &owner, result->body.value(),
                             result->tensors);
        std::move(done)(&decoder);
      });
}

}  // namespace hawser::rref
