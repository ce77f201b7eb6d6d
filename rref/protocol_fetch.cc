// Fetches of values, at both ends.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/status_details.h"
#include "rpc/identity/timeout.h"
#include "rref/access/locked_alias.h"
#include "rref/protocol.h"
#include "rref/service_methods.h"
#include "rref/wire_ids.h"

namespace hawser::rref {
namespace {

using rpc::ToStatusDetails;

absl::Status ShuttingDownError() {
  return absl::UnavailableError("the worker is shutting down");
}

// The error of a value; OK if there is none.
absl::Status ErrorOf(const v1::RRefFetchedValue& value) {
  if (!value.has_error()) return absl::OkStatus();
  absl::Status error = rpc::FromStatusDetails(value.error());
  if (error.ok()) {
    return absl::UnknownError("the owner sent an error without a code");
  }
  return error;
}

// Whether `reply` has a value for each of `count` requests, and each tensor
// belongs to a value.
bool IsComplete(const rpc::Message<v1::RRefFetchReply>& reply, size_t count) {
  if (reply.body.values().size() != static_cast<int>(count)) return false;
  uint64_t num_tensors = 0;
  for (const v1::RRefFetchedValue& value : reply.body.values()) {
    num_tensors += value.num_tensors();
  }
  return num_tensors == reply.tensors.size();
}

// A value in a message, with its tensors.
struct EncodedValue {
  v1::RRefFetchedValue value;
  std::vector<Tensor> tensors;
};

// Encodes `value` for `peer`. Its tensors hold the access until they have been
// sent, or are copies if `copy`.
absl::StatusOr<EncodedValue> EncodeValue(rpc::ServiceHost& host,
                                         const rpc::WorkerInfo& peer,
                                         const ReadableObject& value,
                                         bool copy) {
  const rpc::ErasedValue& object = value.object;
  if (object.type->encode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of type ", object.type->name,
                     " cannot be encoded: use it on its owner"));
  }
  rpc::Encoder encoder(host.agent(), &peer);
  RETURN_IF_ERROR(object.type->encode(encoder, object.value.get()));
  EncodedValue encoded;
  encoded.value.set_type_name(object.type->name);
  encoded.value.set_value(encoder.TakeValues());
  encoded.tensors = encoder.TakeTensors();
  for (Tensor& t : encoded.tensors) {
    ASSIGN_OR_RETURN(t,
                     copy ? CopyWithHistory(t) : LockedAlias(t, value.access));
  }
  encoded.value.set_num_tensors(static_cast<uint32_t>(encoded.tensors.size()));
  return encoded;
}

rpc::Message<v1::RRefFetchReply> ToReply(std::vector<EncodedValue> values) {
  rpc::Message<v1::RRefFetchReply> reply;
  for (EncodedValue& encoded : values) {
    *reply.body.add_values() = std::move(encoded.value);
    std::move(encoded.tensors.begin(), encoded.tensors.end(),
              std::back_inserter(reply.tensors));
  }
  return reply;
}

// The object of `value`, once it has been created, without access to it.
async::Future<ReadableObject> AwaitCreated(
    const std::shared_ptr<OwnerValue>& value) {
  return value->future().Then([](absl::StatusOr<rpc::ErasedValue> object)
                                  -> absl::StatusOr<ReadableObject> {
    RETURN_IF_ERROR(object);
    return ReadableObject{*std::move(object), nullptr};
  });
}

// The object of `value`, once it has been created and may be read.
async::Future<ReadableObject> AwaitReadable(
    const std::shared_ptr<OwnerValue>& value) {
  return value->future().Then([value](absl::StatusOr<rpc::ErasedValue> object) {
    if (!object.ok()) {
      return async::MakeReadyFuture<ReadableObject>(object.status());
    }
    return value->lock().AcquireShared().Then(
        [object = *std::move(object)](
            absl::StatusOr<AsyncSharedMutex::Holder> access) mutable
        -> absl::StatusOr<ReadableObject> {
          RETURN_IF_ERROR(access);
          return ReadableObject{std::move(object), *std::move(access)};
        });
  });
}

}  // namespace

// A value at its owner that was requested.
struct Protocol::FetchedValue {
  RRefId rref;
  std::shared_ptr<OwnerValue> value;
  // The object, or the error of the function that should have created it.
  absl::StatusOr<ReadableObject> object;
};

async::Future<ReadableObject> Protocol::AwaitOwnValue(
    RRefId rref, const std::shared_ptr<OwnerValue>& value,
    std::optional<absl::Duration> timeout) {
  const auto fail = [this](absl::Status status) {
    return async::MakeReadyFuture<ReadableObject>(rpc::WithErrorDetail(
        std::move(status), self_, /*maybe_applied=*/false));
  };
  if (timeout.has_value()) {
    if (absl::Status status = rpc::CheckTimeout(*timeout); !status.ok()) {
      return fail(std::move(status));
    }
  }
  async::Future<ReadableObject> readable = AwaitReadable(value);
  if (readable.ready()) return readable;
  async::MonotonicTime deadline = async::kNever;
  {
    const rpc::HostHandle::Use host = host_.Acquire();
    if (!host) {
      return fail(absl::FailedPreconditionError("the worker was shut down"));
    }
    deadline = async::AddDelay(host->clock().Now(),
                               timeout.value_or(host->default_timeout()));
  }
  if (const rpc::CurrentCall* call = rpc::CurrentCall::Get()) {
    deadline = std::min(deadline, call->deadline());
  }
  return AwaitUntil(rref, *value, std::move(readable), deadline);
}

async::Future<ReadableObject> Protocol::AwaitUntil(
    RRefId rref, const OwnerValue& value,
    async::Future<ReadableObject> readable, async::MonotonicTime deadline) {
  if (readable.ready() || deadline == async::kNever) return readable;
  const rpc::HostHandle::Use host = host_.Acquire();
  if (!host) {
    return async::MakeReadyFuture<ReadableObject>(ShuttingDownError());
  }
  const auto promise = std::make_shared<async::Promise<ReadableObject>>();
  async::Future<ReadableObject> result = promise->future();
  async::TaskContext::Scope detached((async::TaskContext()));
  const async::TimerId timer = host->clock().CallAt(
      deadline,
      [weak = weak_from_this(), promise, rref, made = value.future()] {
        const std::shared_ptr<Protocol> self = weak.lock();
        if (self == nullptr) return;
        const rpc::HostHandle::Use use = self->host_.Acquire();
        if (!use) return;
        use->executor().Post([promise, rref, owner = self->self_,
                              created = made.ready()] {
          promise->Set(rpc::WithErrorDetail(
              absl::DeadlineExceededError(absl::StrCat(
                  "the value of reference ", rref.ToString(),
                  created ? " was in use by a method, a lock or an optimizer "
                            "step until the timeout, on its owner, worker '"
                          : " was not created in time by its owner, worker '",
                  owner.name, "'")),
              owner, /*maybe_applied=*/false));
        });
      });
  (void)std::move(readable).Then([weak = weak_from_this(), promise, timer](
                                     absl::StatusOr<ReadableObject> object) {
    promise->Set(std::move(object));
    const std::shared_ptr<Protocol> self = weak.lock();
    if (self == nullptr) return;
    if (const rpc::HostHandle::Use use = self->host_.Acquire()) {
      use->clock().Cancel(timer);
    }
  });
  return result;
}

async::Future<Protocol::FetchReply> Protocol::HandleFetch(
    const rpc::MethodCall& call, rpc::Message<v1::RRefFetchRequest> request) {
  // Bounds the reply by the values that there are.
  absl::flat_hash_set<RRefId> distinct;
  std::vector<async::Future<FetchedValue>> values;
  for (const v1::GlobalId& rref : request.body.rrefs()) {
    if (!distinct.insert(RRefId{FromProto(rref)}).second) {
      return async::MakeReadyFuture<FetchReply>(absl::InvalidArgumentError(
          absl::StrCat("a request fetches reference ",
                       RRefId{FromProto(rref)}.ToString(), " twice")));
    }
    values.push_back(
        AwaitFetched(rref, call, /*alone=*/request.body.rrefs().size() == 1));
  }
  return async::JoinAll(std::move(values))
      .Then([self = shared_from_this(), peer = call.peer,
             deadline =
                 call.deadline](absl::StatusOr<std::vector<FetchedValue>> found)
                -> async::Future<FetchReply> {
        if (!found.ok()) {
          return async::MakeReadyFuture<FetchReply>(found.status());
        }
        return self->EncodeValues(peer, *std::move(found), deadline);
      });
}

async::Future<Protocol::FetchedValue> Protocol::AwaitFetched(
    const v1::GlobalId& rref, const rpc::MethodCall& call, bool alone) {
  absl::StatusOr<std::shared_ptr<OwnerValue>> found =
      FindValue(rref, call.peer);
  if (!found.ok()) {
    return async::MakeReadyFuture<FetchedValue>(found.status());
  }
  const RRefId id{FromProto(rref)};
  // Waits without blocking a thread.
  return AwaitUntil(id, **found,
                    alone ? AwaitReadable(*found) : AwaitCreated(*found),
                    call.deadline)
      .Then([id, value = *found](absl::StatusOr<ReadableObject> object) {
        return FetchedValue{id, value, std::move(object)};
      });
}

bool Protocol::AccessAll(std::vector<FetchedValue>& values) {
  std::vector<async::Future<AsyncSharedMutex::Holder>> accesses;
  bool all_free = true;
  for (const FetchedValue& value : values) {
    accesses.emplace_back();
    if (!value.object.ok()) continue;
    accesses.back() = value.value->lock().AcquireShared();
    all_free = all_free && accesses.back().ready();
  }
  if (!all_free) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].object.ok()) continue;
    absl::StatusOr<AsyncSharedMutex::Holder> access =
        std::move(accesses[i]).Wait();
    if (access.ok()) {
      values[i].object->access = *std::move(access);
    } else {
      values[i].object = access.status();
    }
  }
  return true;
}

async::Future<Protocol::FetchReply> Protocol::EncodeValues(
    const rpc::WorkerInfo& peer, std::vector<FetchedValue> values,
    async::MonotonicTime deadline) {
  // Never waits for access to one value while it holds that to another, because
  // a writer may do the same in another order: if several values are not all
  // free at once, each is copied under its own lock.
  const bool copy = values.size() > 1 && !AccessAll(values);
  std::vector<async::Future<EncodedValue>> encoded;
  for (FetchedValue& value : values) {
    auto encode = [self = shared_from_this(), peer,
                   copy](absl::StatusOr<ReadableObject> object)
        -> async::Future<EncodedValue> {
      if (!object.ok()) {
        EncodedValue error;
        *error.value.mutable_error() = ToStatusDetails(rpc::WithErrorDetail(
            object.status(), self->self_, /*maybe_applied=*/false));
        return async::MakeReadyFuture<EncodedValue>(std::move(error));
      }
      const rpc::HostHandle::Use host = self->host_.Acquire();
      if (!host) {
        return async::MakeReadyFuture<EncodedValue>(ShuttingDownError());
      }
      // This may be a thread of the transport.
      if (object->object.type->quick_to_encode && !copy) {
        return async::MakeReadyFuture<EncodedValue>(
            EncodeValue(*host, peer, *object, copy));
      }
      return async::MakeReadyFuture<ReadableObject>(std::move(object))
          .Then(&host->executor(),
                [self, peer, copy](absl::StatusOr<ReadableObject> held)
                    -> absl::StatusOr<EncodedValue> {
                  RETURN_IF_ERROR(held);
                  const rpc::HostHandle::Use use = self->host_.Acquire();
                  if (!use) return ShuttingDownError();
                  return EncodeValue(*use, peer, *held, copy);
                });
    };
    if (copy && value.object.ok()) {
      encoded.push_back(AwaitUntil(value.rref, *value.value,
                                   AwaitReadable(value.value), deadline)
                            .Then(std::move(encode)));
    } else {
      encoded.push_back(encode(std::move(value.object)));
    }
  }
  return async::JoinAll(std::move(encoded))
      .Then([](absl::StatusOr<std::vector<EncodedValue>> all)
                -> absl::StatusOr<FetchReply> {
        RETURN_IF_ERROR(all);
        return ToReply(*std::move(all));
      });
}

std::shared_ptr<async::WaitPoller> Protocol::Fetch(
    std::vector<Reference::Fetch> fetches,
    std::optional<absl::Duration> timeout) {
  std::vector<std::shared_ptr<async::WaitPoller>> pollers;
  std::vector<Reference::Fetch> together;
  absl::flat_hash_set<RRefId> distinct;
  for (Reference::Fetch& fetch : fetches) {
    const Reference& reference = *fetch.reference;
    if (absl::Status status = users_.Check(reference.fork()); !status.ok()) {
      std::move(fetch.done)(rpc::WithErrorDetail(std::move(status), self_,
                                                 /*maybe_applied=*/false));
      continue;
    }
    // One whose creation may fail must not delay the others, and a request
    // fetches a reference once.
    const async::Future<void>& confirmed = reference.confirmed();
    const bool alone = !confirmed.ready() || !confirmed.result().ok() ||
                       !distinct.insert(reference.id()).second;
    if (alone && fetches.size() > 1) {
      std::vector<Reference::Fetch> one;
      one.push_back(std::move(fetch));
      pollers.push_back(SendFetch(std::move(one), timeout));
    } else {
      together.push_back(std::move(fetch));
    }
  }
  if (!together.empty()) {
    pollers.push_back(SendFetch(std::move(together), timeout));
  }
  return async::PollerOfAll(std::move(pollers));
}

std::shared_ptr<async::WaitPoller> Protocol::SendFetch(
    std::vector<Reference::Fetch> fetches,
    std::optional<absl::Duration> timeout) {
  const rpc::HostHandle::Use host = host_.Acquire();
  if (!host) {
    for (Reference::Fetch& fetch : fetches) {
      std::move(fetch.done)(rpc::WithErrorDetail(
          absl::FailedPreconditionError("the worker was shut down"), self_,
          /*maybe_applied=*/false));
    }
    return nullptr;
  }
  v1::RRefFetchRequest request;
  for (const Reference::Fetch& fetch : fetches) {
    *request.add_rrefs() = ToProto(fetch.reference->id());
  }
  rpc::MethodCallOptions options;
  options.timeout = timeout;
  options.intercept_messages = true;
  const rpc::WorkerInfo owner = fetches.front().reference->owner();
  async::Future<FetchReply> reply =
      host->CallMethod(owner, kFetchMethod, request, {}, options);
  const async::Future<void>& confirmed = fetches.front().reference->confirmed();
  if (!confirmed.ready() || !confirmed.result().ok()) {
    // Fetched alone. If the creation fails, or has failed since the check, the
    // value will never exist.
    confirmed.OnReady([reply](const absl::Status& status) {
      if (!status.ok()) reply.Cancel();
    });
  }
  std::shared_ptr<async::WaitPoller> poller = reply.wait_poller();
  std::move(reply).OnReady(
      [self = shared_from_this(), owner, fetches = std::move(fetches)](
          const absl::StatusOr<FetchReply>& result) mutable {
        self->EndFetch(fetches, owner, result);
      });
  return poller;
}

void Protocol::EndFetch(std::vector<Reference::Fetch>& fetches,
                        const rpc::WorkerInfo& owner,
                        const absl::StatusOr<FetchReply>& reply) {
  absl::Status error = reply.status();
  if (error.ok() && !IsComplete(*reply, fetches.size())) {
    error = absl::InternalError(absl::StrCat(
        "the reply of worker '", owner.name, "' to a fetch is incomplete"));
  }
  if (!error.ok()) {
    for (Reference::Fetch& fetch : fetches) {
      const absl::Status known = users_.Check(fetch.reference->fork());
      std::move(fetch.done)(rpc::WithErrorDetail(known.ok() ? error : known,
                                                 self_,
                                                 /*maybe_applied=*/false));
    }
    return;
  }
  auto next = reply->tensors.begin();
  for (size_t i = 0; i < fetches.size(); ++i) {
    const v1::RRefFetchedValue& value = reply->body.values(static_cast<int>(i));
    std::vector<Tensor> tensors(next, next + value.num_tensors());
    next += value.num_tensors();
    EndFetch(fetches[i], owner, value, std::move(tensors));
  }
}

void Protocol::EndFetch(Reference::Fetch& fetch, const rpc::WorkerInfo& owner,
                        const v1::RRefFetchedValue& value,
                        std::vector<Tensor> tensors) {
  if (absl::Status error = ErrorOf(value); !error.ok()) {
    std::move(fetch.done)(rpc::WithErrorDetail(std::move(error), owner,
                                               /*maybe_applied=*/false));
    return;
  }
  if (value.type_name() != fetch.type_name) {
    std::move(fetch.done)(rpc::WithErrorDetail(
        absl::InvalidArgumentError(absl::StrCat(
            "a reference to ", fetch.type_name, " refers to a value of type ",
            value.type_name(), " on worker '", owner.name, "'")),
        owner, /*maybe_applied=*/false));
    return;
  }
  const rpc::HostHandle::Use use = host_.Acquire();
  rpc::Decoder decoder(use->agent(), &owner, value.value(), std::move(tensors));
  std::move(fetch.done)(&decoder);
}

}  // namespace hawser::rref
