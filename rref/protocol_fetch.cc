// Fetches of values, at both ends.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/status_details.h"
#include "rpc/identity/timeout.h"
#include "rref/locked_alias.h"
#include "rref/protocol.h"
#include "rref/service_methods.h"
#include "rref/wire_ids.h"

namespace hawser::rref {
namespace {

using FetchReply = rpc::Message<v1::RRefFetchReply>;
using rpc::ToStatusDetails;

absl::Status ShuttingDownError() {
  return absl::UnavailableError("the worker is shutting down");
}

// The error in a reply; OK if it contains a value.
absl::Status ErrorOf(const v1::RRefFetchReply& reply) {
  if (!reply.has_error()) return absl::OkStatus();
  absl::Status error = rpc::FromStatusDetails(reply.error());
  if (error.ok()) {
    return absl::UnknownError("the owner sent an error without a code");
  }
  return error;
}

// Encodes `object` for `peer`. Its tensors hold `lock` until they have been
// sent.
absl::StatusOr<FetchReply> EncodeValue(rpc::ServiceHost& host,
                                       const rpc::WorkerInfo& peer,
                                       const rpc::ErasedValue& object,
                                       AsyncSharedMutex::Holder lock) {
  if (object.type->encode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of type ", object.type->name,
                     " cannot be encoded: use it on its owner"));
  }
  rpc::Encoder encoder(host.agent(), &peer);
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

async::Future<rpc::ErasedValue> Protocol::AwaitOwnValue(
    RRefId rref, const OwnerValue& value,
    std::optional<absl::Duration> timeout) {
  const auto fail = [this](absl::Status status) {
    return async::MakeReadyFuture<rpc::ErasedValue>(rpc::WithErrorDetail(
        std::move(status), self_, /*maybe_applied=*/false));
  };
  if (timeout.has_value()) {
    if (absl::Status status = rpc::CheckTimeout(*timeout); !status.ok()) {
      return fail(std::move(status));
    }
  }
  if (value.future().ready()) return value.future();
  async::MonotonicTime deadline = async::kNever;
  {
    const HostHandle::Use host = host_.Acquire();
    if (!host) {
      return fail(absl::FailedPreconditionError("the worker was shut down"));
    }
    deadline = async::AddDelay(host->clock().Now(),
                               timeout.value_or(host->default_timeout()));
  }
  if (const rpc::CurrentCall* call = rpc::CurrentCall::Get()) {
    deadline = std::min(deadline, call->deadline());
  }
  return AwaitUntil(rref, value, deadline);
}

async::Future<rpc::ErasedValue> Protocol::AwaitUntil(
    RRefId rref, const OwnerValue& value, async::MonotonicTime deadline) {
  const async::Future<rpc::ErasedValue>& made = value.future();
  if (made.ready() || deadline == async::kNever) return made;
  const HostHandle::Use host = host_.Acquire();
  if (!host) {
    return async::MakeReadyFuture<rpc::ErasedValue>(ShuttingDownError());
  }
  const auto promise = std::make_shared<async::Promise<rpc::ErasedValue>>();
  async::Future<rpc::ErasedValue> result = promise->future();
  async::TaskContext::Scope detached((async::TaskContext()));
  const async::TimerId timer =
      host->clock().CallAt(deadline, [weak = weak_from_this(), promise, rref] {
        const std::shared_ptr<Protocol> self = weak.lock();
        if (self == nullptr) return;
        const HostHandle::Use use = self->host_.Acquire();
        if (!use) return;
        use->executor().Post([promise, rref, owner = self->self_] {
          promise->Set(rpc::WithErrorDetail(
              absl::DeadlineExceededError(absl::StrCat(
                  "the value of reference ", rref.ToString(),
                  " was not created in time by its owner, worker '", owner.name,
                  "'")),
              owner, /*maybe_applied=*/false));
        });
      });
  made.OnReady([weak = weak_from_this(), promise,
                timer](const absl::StatusOr<rpc::ErasedValue>& object) {
    promise->Set(object);
    const std::shared_ptr<Protocol> self = weak.lock();
    if (self == nullptr) return;
    if (const HostHandle::Use use = self->host_.Acquire()) {
      use->clock().Cancel(timer);
    }
  });
  return result;
}

async::Future<FetchReply> Protocol::HandleFetch(
    const rpc::MethodCall& call, rpc::Message<v1::RRefFetchRequest> request) {
  absl::StatusOr<std::shared_ptr<OwnerValue>> found =
      FindValue(request.body.rref(), call.peer);
  if (!found.ok()) return async::MakeReadyFuture<FetchReply>(found.status());
  const RRefId rref{FromProto(request.body.rref())};
  // Waits for the creation without blocking a thread.
  const std::shared_ptr<OwnerValue> value = *std::move(found);
  return AwaitUntil(rref, *value, call.deadline)
      .Then([self = shared_from_this(), value,
             peer = call.peer](absl::StatusOr<rpc::ErasedValue> object)
                -> async::Future<FetchReply> {
        if (!object.ok()) {
          FetchReply reply;
          *reply.body.mutable_error() = ToStatusDetails(rpc::WithErrorDetail(
              object.status(), self->self_, /*maybe_applied=*/false));
          return async::MakeReadyFuture<FetchReply>(std::move(reply));
        }
        auto encode = [self, value, peer, object = *object](
                          absl::StatusOr<AsyncSharedMutex::Holder> lock)
            -> absl::StatusOr<FetchReply> {
          RETURN_IF_ERROR(lock);
          const HostHandle::Use host = self->host_.Acquire();
          if (!host) return ShuttingDownError();
          return EncodeValue(*host, peer, object, *std::move(lock));
        };
        async::Future<AsyncSharedMutex::Holder> lock =
            value->lock().AcquireShared();
        // This may be a thread of the transport.
        if (object->type->quick_to_encode) {
          return std::move(lock).Then(std::move(encode));
        }
        return std::move(lock).Then(
            [self, encode = std::move(encode)](
                absl::StatusOr<AsyncSharedMutex::Holder> held) mutable
            -> async::Future<FetchReply> {
              const HostHandle::Use host = self->host_.Acquire();
              if (!host) {
                return async::MakeReadyFuture<FetchReply>(ShuttingDownError());
              }
              return async::MakeReadyFuture<AsyncSharedMutex::Holder>(
                         std::move(held))
                  .Then(&host->executor(), std::move(encode));
            });
      });
}

void Protocol::Fetch(const Reference& reference, std::string_view type_name,
                     bool await, std::optional<absl::Duration> timeout,
                     Reference::Fetched done) {
  if (absl::Status status = users_.Check(reference.fork()); !status.ok()) {
    std::move(done)(rpc::WithErrorDetail(std::move(status), self_,
                                         /*maybe_applied=*/false));
    return;
  }
  const HostHandle::Use host = host_.Acquire();
  if (!host) {
    std::move(done)(rpc::WithErrorDetail(
        absl::FailedPreconditionError("the worker was shut down"), self_,
        /*maybe_applied=*/false));
    return;
  }
  v1::RRefFetchRequest request;
  *request.mutable_rref() = ToProto(reference.id());
  rpc::MethodCallOptions options;
  options.timeout = timeout;
  options.intercept_messages = true;
  options.await = await;
  async::Future<FetchReply> reply =
      host->CallMethod(reference.owner(), kFetchMethod, request, {}, options);
  const async::Future<void>& confirmed = reference.confirmed();
  if (!confirmed.ready() || !confirmed.result().ok()) {
    // If the creation fails, or has failed since the check, the value will
    // never exist.
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
          std::move(done)(rpc::WithErrorDetail(
              known.ok() ? result.status() : known, self->self_,
              /*maybe_applied=*/false));
          return;
        }
        if (absl::Status error = ErrorOf(result->body); !error.ok()) {
          std::move(done)(rpc::WithErrorDetail(std::move(error), owner,
                                               /*maybe_applied=*/false));
          return;
        }
        if (result->body.type_name() != type) {
          std::move(done)(rpc::WithErrorDetail(
              absl::InvalidArgumentError(absl::StrCat(
                  "a reference to ", type, " refers to a value of type ",
                  result->body.type_name(), " on worker '", owner.name, "'")),
              owner, /*maybe_applied=*/false));
          return;
        }
        const HostHandle::Use use = self->host_.Acquire();
        rpc::Decoder decoder(use->agent(), &owner, result->body.value(),
                             result->tensors);
        std::move(done)(&decoder);
      });
}

}  // namespace hawser::rref
