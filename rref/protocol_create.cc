// Creation of values on other workers, at both ends.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/status_prefix.h"
#include "rpc/functions/function_name.h"
#include "rref/protocol.h"
#include "rref/service_methods.h"
#include "rref/wire_ids.h"

namespace hawser::rref {

absl::StatusOr<std::shared_ptr<Reference>> Protocol::Create(
    const rpc::Destination& to, std::optional<absl::Duration> timeout,
    std::string_view function, std::string_view signature,
    EncodeArguments encode_arguments) {
  const rpc::HostHandle::Use host = host_.Acquire();
  if (!host) {
    return rpc::WithErrorDetail(
        absl::FailedPreconditionError("the worker was shut down"), self_,
        /*maybe_applied=*/false);
  }
  ASSIGN_OR_RETURN(const rpc::WorkerInfo owner, host->FindWorker(to));
  RETURN_IF_ERROR(
      rpc::WithErrorDetail(rpc::CheckFunctionName(function, signature), owner,
                           /*maybe_applied=*/false));
  Creation creation = BeginCreation(owner);

  rpc::Encoder encoder(host->agent(), &owner);
  if (absl::Status status =
          rpc::WithErrorDetail(encode_arguments(encoder), owner,
                               /*maybe_applied=*/false);
      !status.ok()) {
    std::move(creation.finish)(status);
    return status;
  }
  v1::RRefCreateRequest request;
  *request.mutable_rref() = ToProto(creation.reference->id());
  *request.mutable_fork() = ToProto(creation.reference->fork());
  request.set_function(std::string(function));
  request.set_signature(std::string(signature));
  request.set_arguments(encoder.TakeValues());
  rpc::MethodCallOptions options;
  options.timeout = timeout;
  options.intercept_messages = true;
  host->CallMethod(owner, kCreateMethod, request, encoder.TakeTensors(),
                   options)
      .OnReady([finish = std::move(creation.finish)](
                   const absl::StatusOr<rpc::Message<v1::RRefCreateReply>>&
                       reply) mutable { std::move(finish)(reply.status()); });
  return creation.reference;
}

Protocol::Creation Protocol::BeginCreation(const rpc::WorkerInfo& owner) {
  const RRefId rref = ids_.NextRRefId();
  const std::string what =
      absl::StrCat("creation of reference ", rref.ToString(), " on worker '",
                   owner.name, "' failed");
  Creation creation;
  if (RunOf(owner) == self_run_) {
    // The fork of the caller itself.
    const ForkId fork{rref};
    auto value = std::make_shared<OwnerValue>();
    // Cannot fail: this worker does not lose itself, and its forks are not
    // limited.
    owners_.Share(rref, fork, self_, value).IgnoreError();
    owners_.AcknowledgeShare(rref, fork, self_run_);
    async::Promise<void> confirmed;
    creation.reference = std::make_shared<Reference>(
        shared_from_this(), rref, self_, value, confirmed.future());
    // Keeps the entry until the function has ended.
    creation.finish =
        [kept = creation.reference, value, what,
         confirmed = std::move(confirmed)](const absl::Status& status) mutable {
          const absl::Status outcome = rpc::WithPrefix(what, status);
          if (!outcome.ok()) value->Set(outcome);
          confirmed.Set(outcome);
        };
    return creation;
  }
  const ForkId fork = ids_.NextForkId();
  async::Future<void> confirmed =
      users_.StartCreation(rref, fork, RunOf(owner));
  creation.reference = std::make_shared<Reference>(
      shared_from_this(), rref, fork, owner, std::move(confirmed));
  creation.finish = [self = shared_from_this(), fork,
                     what](const absl::Status& status) {
    self->Run(self->users_.FinishCreation(fork, rpc::WithPrefix(what, status)));
  };
  return creation;
}

absl::StatusOr<std::shared_ptr<OwnerValue>> Protocol::ReceiveCreation(
    const v1::GlobalId& rref_proto, const v1::GlobalId& fork_proto,
    const rpc::WorkerInfo& creator) {
  const RRefId rref{FromProto(rref_proto)};
  const ForkId fork{FromProto(fork_proto)};
  const rpc::WorkerRun holder = RunOf(creator);
  if (rref.creator != holder || fork.creator != holder) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker '", creator.name, "' requested the creation of reference ",
        rref.ToString(), " with an id of another worker"));
  }
  if (holder == self_run_) return owners_.Find(rref, self_);
  return owners_.Create(rref, fork, creator);
}

async::Future<rpc::Message<v1::RRefCreateReply>> Protocol::HandleCreate(
    const rpc::MethodCall& call, rpc::Message<v1::RRefCreateRequest> request) {
  using Reply = rpc::Message<v1::RRefCreateReply>;
  const rpc::HostHandle::Use host = host_.Acquire();
  if (!host) {
    return async::MakeReadyFuture<Reply>(
        absl::UnavailableError("the worker is shutting down"));
  }
  absl::StatusOr<const rpc::RegisteredFunction*> function = host->FindFunction(
      call, request.body.function(), request.body.signature());
  if (!function.ok()) {
    return async::MakeReadyFuture<Reply>(function.status());
  }
  absl::StatusOr<std::shared_ptr<OwnerValue>> value =
      ReceiveCreation(request.body.rref(), request.body.fork(), call.peer);
  if (!value.ok()) return async::MakeReadyFuture<Reply>(value.status());

  rpc::Decoder arguments(host->agent(), &call.peer, request.body.arguments(),
                         std::move(request.tensors));
  return host->Invoke(**function, arguments)
      .Then([self = self_, value = *std::move(value)](
                absl::StatusOr<rpc::ErasedValue> result) -> Reply {
        if (result.ok() && result->value == nullptr) {
          result = absl::InvalidArgumentError(
              "the function returns void: a reference needs a value");
        }
        // The creation itself has succeeded. The error is returned to each
        // fetch.
        if (!result.ok()) {
          result = rpc::WithErrorDetail(std::move(result).status(), self,
                                        /*maybe_applied=*/false);
        }
        value->Set(std::move(result));
        return Reply();
      });
}

}  // namespace hawser::rref
