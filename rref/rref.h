#ifndef HAWSER_RREF_RREF_H_
#define HAWSER_RREF_RREF_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function.h"
#include "rpc/wire/checked_traits.h"
#include "rpc/wire/wire_traits.h"
#include "rref/access/async_shared_mutex.h"
#include "rref/access/locked_value.h"
#include "rref/owner_value.h"
#include "rref/reference.h"
#include "rref/reference_codec.h"
#include "rref/rref_service.h"

namespace hawser::rref {

template <class T>
class RRef;

namespace internal {

template <class T>
async::Future<std::vector<T>> FetchAll(std::span<const RRef<T>> references,
                                       std::optional<absl::Duration> timeout);

}  // namespace internal

// A reference to a `T` that lives on one worker, its owner, as long as any
// worker refers to it.
//
// `T` is any type with a wire name (rpc/functions/function.h); only ToHere
// needs a type that can be encoded. References are passed as arguments and
// results of calls, also inside containers. A function that takes a reference
// starts once the owner knows of it.
//
// A handle: copies share one copy of the reference, and the owner is notified
// when the last of them is destroyed. As thread-safe as a shared_ptr. May
// outlive its agent. The protocol and its guarantees: docs/rref.md.
template <class T>
class RRef {
 public:
  // Empty: only valid() may be called.
  RRef() = default;
  explicit RRef(std::shared_ptr<const Reference> reference)
      : reference_(std::move(reference)) {}

  bool valid() const { return reference_ != nullptr; }

  RRefId id() const { return reference_->id(); }
  ForkId fork() const { return reference_->fork(); }
  const rpc::WorkerInfo& owner() const { return reference_->owner(); }
  bool is_owner() const { return reference_->is_owner(); }

  // Whether the owner has acknowledged this copy. After Remote, also on this
  // worker itself: whether the function has ended. Otherwise true at the owner.
  bool confirmed() const {
    return reference_->confirmed().ready() &&
           reference_->confirmed().result().ok();
  }
  // Completes once confirmed, or with the error of the creation.
  async::Future<void> WhenConfirmed() const { return reference_->confirmed(); }

  // Returns a copy of the value; at the owner, the value itself. Waits for the
  // creation without blocking a thread. In a distributed autograd context the
  // gradient of the copy returns to the owner.
  //
  // The value is read between two updates by a distributed optimizer or a
  // method, never in the middle of one (docs/rref.md, G7). At the owner, a
  // tensor shares memory with the value and shows later updates.
  //
  // Errors, for this fetch only unless "permanent":
  //   the error of the function that was to create the value.
  //   the error of the creation (permanent).
  //   kUnavailable         the owner is lost (permanent).
  //   kDeadlineExceeded    not within `timeout` (unset: the agent's default),
  //                        at the owner too.
  //   kInvalidArgument     the value is not a `T`, or `timeout` is negative.
  //   kFailedPrecondition  after the worker's shutdown. ToHere: also in a
  //                        method that has access to the object
  //                        (rref/method.h).
  async::Future<T> ToHereAsync(
      std::optional<absl::Duration> timeout = std::nullopt) const {
    return Fetch(timeout);
  }
  absl::StatusOr<T> ToHere(
      std::optional<absl::Duration> timeout = std::nullopt) const {
    RETURN_IF_ERROR(reference_->CheckMayWait());
    return Fetch(timeout).Wait();
  }

  // Returns the object itself, once it has been created. The pointer keeps the
  // object alive, but not the reference. The access is not ordered against
  // optimizer steps, methods and fetches: see Lock.
  //
  //   kFailedPrecondition  this worker is not the owner.
  //   kInvalidArgument     the value is not a `T`.
  //   the error of the function that was to create it.
  async::Future<std::shared_ptr<T>> LocalValueAsync() const;
  absl::StatusOr<std::shared_ptr<T>> LocalValue() const {
    return LocalValueAsync().Wait();
  }

  // Like LocalValue, once no other has access to the object: exclusive access
  // for Lock, shared access, to read, for LockShared (docs/rref.md, G9). Until
  // the end of the access, optimizer steps and methods of this reference wait,
  // and so do fetches if it is exclusive. Keep it short, and wait neither for
  // those nor for another access to the same object meanwhile.
  //
  //   the errors of LocalValue.
  //   kFailedPrecondition  Lock, LockShared: in a method that has access to the
  //                        object (rref/method.h).
  async::Future<LockedValue<T>> LockAsync() const {
    return LockWith<T>(&AsyncSharedMutex::AcquireExclusive);
  }
  absl::StatusOr<LockedValue<T>> Lock() const {
    RETURN_IF_ERROR(reference_->CheckMayWait());
    return LockAsync().Wait();
  }
  async::Future<LockedValue<const T>> LockSharedAsync() const {
    return LockWith<const T>(&AsyncSharedMutex::AcquireShared);
  }
  absl::StatusOr<LockedValue<const T>> LockShared() const {
    RETURN_IF_ERROR(reference_->CheckMayWait());
    return LockSharedAsync().Wait();
  }

  const std::shared_ptr<const Reference>& reference() const {
    return reference_;
  }

 private:
  template <class U>
  friend async::Future<std::vector<U>> internal::FetchAll(
      std::span<const RRef<U>> references,
      std::optional<absl::Duration> timeout);

  async::Future<T> Fetch(std::optional<absl::Duration> timeout) const;
  // Adds a request of the value to `fetches`.
  async::Future<T> AddFetch(std::vector<Reference::Fetch>& fetches) const;
  template <class U>
  async::Future<LockedValue<U>> LockWith(
      async::Future<AsyncSharedMutex::Holder> (AsyncSharedMutex::*acquire)())
      const;
  // Converts the value of `reference` to a `T`.
  static absl::StatusOr<std::shared_ptr<T>> ToObject(
      const Reference& reference, const rpc::ErasedValue& value);

  std::shared_ptr<const Reference> reference_;
};

// Returns copies of the values of `references`, in their order, as ToHere does.
// The values of one owner travel in one message; in a distributed autograd
// context so do their gradients, once all of them are computed. Complete when
// all values have come; the error is the first that occurred.
template <class T>
async::Future<std::vector<T>> ToHereAllAsync(
    std::span<const RRef<T>> references,
    std::optional<absl::Duration> timeout = std::nullopt) {
  return internal::FetchAll(references, timeout);
}
template <class T>
absl::StatusOr<std::vector<T>> ToHereAll(
    std::span<const RRef<T>> references,
    std::optional<absl::Duration> timeout = std::nullopt) {
  for (const RRef<T>& reference : references) {
    RETURN_IF_ERROR(reference.reference()->CheckMayWait());
  }
  return internal::FetchAll(references, timeout).Wait();
}
template <class T>
async::Future<std::vector<T>> ToHereAllAsync(
    const std::vector<RRef<T>>& references,
    std::optional<absl::Duration> timeout = std::nullopt) {
  return ToHereAllAsync(std::span<const RRef<T>>(references), timeout);
}
template <class T>
absl::StatusOr<std::vector<T>> ToHereAll(
    const std::vector<RRef<T>>& references,
    std::optional<absl::Duration> timeout = std::nullopt) {
  return ToHereAll(std::span<const RRef<T>>(references), timeout);
}

// Runs `function` on worker `to`, keeps its result there and returns a
// reference to it. The function starts immediately; the reference can be used
// and shared immediately. An error of the function is returned to each fetch.
//
//   kNotFound            the worker does not exist.
//   kFailedPrecondition  the agent was shut down.
//   errors of encoding the arguments.
template <class R, class... A>
absl::StatusOr<RRef<R>> Remote(rpc::Agent& agent, const rpc::Destination& to,
                               const rpc::CallOptions& options,
                               const rpc::Function<R(A...)>& function,
                               const std::type_identity_t<A>&... arguments) {
  static_assert(!std::is_void_v<R>,
                "a function that returns void cannot be called with Remote");
  ASSIGN_OR_RETURN(const std::shared_ptr<Protocol> protocol, ProtocolOf(agent));
  ASSIGN_OR_RETURN(
      std::shared_ptr<Reference> reference,
      protocol->Create(to, options.timeout, function.name(),
                       function.Signature(), [&](rpc::Encoder& encoder) {
                         return rpc::internal::Encode<A...>(encoder,
                                                            arguments...);
                       }));
  return RRef<R>(std::move(reference));
}
template <class R, class... A>
absl::StatusOr<RRef<R>> Remote(rpc::Agent& agent, const rpc::Destination& to,
                               const rpc::Function<R(A...)>& function,
                               const std::type_identity_t<A>&... arguments) {
  return Remote(agent, to, rpc::CallOptions(), function, arguments...);
}

// Returns a reference to `value`, owned by this worker. Other workers know it
// once it is shared with them.
//
//   kFailedPrecondition  the agent was shut down.
template <class T>
absl::StatusOr<RRef<T>> MakeLocal(rpc::Agent& agent, T value) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Protocol> protocol, ProtocolOf(agent));
  ASSIGN_OR_RETURN(std::shared_ptr<Reference> reference,
                   protocol->MakeLocal(rpc::Erase<T>(std::move(value))));
  return RRef<T>(std::move(reference));
}

// --- Implementation.

template <class T>
async::Future<std::shared_ptr<T>> RRef<T>::LocalValueAsync() const {
  if (absl::Status status = reference_->CheckIsOwner(); !status.ok()) {
    return async::MakeReadyFuture<std::shared_ptr<T>>(std::move(status));
  }
  return reference_->value()->future().Then(
      [reference = reference_](absl::StatusOr<rpc::ErasedValue> object)
          -> absl::StatusOr<std::shared_ptr<T>> {
        RETURN_IF_ERROR(object);
        return ToObject(*reference, *object);
      });
}

template <class T>
template <class U>
async::Future<LockedValue<U>> RRef<T>::LockWith(
    async::Future<AsyncSharedMutex::Holder> (AsyncSharedMutex::*acquire)())
    const {
  return LocalValueAsync().Then([value = reference_->value(), acquire](
                                    absl::StatusOr<std::shared_ptr<T>> object) {
    if (!object.ok()) {
      return async::MakeReadyFuture<LockedValue<U>>(object.status());
    }
    return (value->lock().*acquire)().Then(
        [object = *std::move(object)](
            absl::StatusOr<AsyncSharedMutex::Holder> access) mutable
        -> absl::StatusOr<LockedValue<U>> {
          RETURN_IF_ERROR(access);
          return LockedValue<U>(std::move(object), *std::move(access));
        });
  });
}

template <class T>
absl::StatusOr<std::shared_ptr<T>> RRef<T>::ToObject(
    const Reference& reference, const rpc::ErasedValue& value) {
  RETURN_IF_ERROR(CheckType(reference, value.type->name, rpc::TypeName<T>()));
  return std::static_pointer_cast<T>(value.value);
}

template <class T>
async::Future<T> RRef<T>::Fetch(std::optional<absl::Duration> timeout) const {
  static_assert(rpc::WireType<T>,
                "the type cannot be encoded: use the value on its owner");
  if (is_owner()) {
    return reference_->AwaitValue(timeout).Then(
        [reference = reference_](
            absl::StatusOr<ReadableObject> value) -> absl::StatusOr<T> {
          RETURN_IF_ERROR(value);
          ASSIGN_OR_RETURN(const std::shared_ptr<T> object,
                           ToObject(*reference, value->object));
          return *object;
        });
  }
  std::vector<Reference::Fetch> fetches;
  async::Future<T> future = AddFetch(fetches);
  future.SetWaitPoller(Reference::Request(std::move(fetches), timeout));
  return future;
}

template <class T>
async::Future<T> RRef<T>::AddFetch(
    std::vector<Reference::Fetch>& fetches) const {
  async::Promise<T> promise;
  async::Future<T> future = promise.future();
  fetches.push_back({.reference = reference_,
                     .type_name = rpc::TypeName<T>(),
                     .done = [promise = std::move(promise)](
                                 absl::StatusOr<rpc::Decoder*> reply) mutable {
                       rpc::internal::CompleteReply(std::move(reply),
                                                    std::move(promise));
                     }});
  return future;
}

namespace internal {

template <class T>
async::Future<std::vector<T>> FetchAll(std::span<const RRef<T>> references,
                                       std::optional<absl::Duration> timeout) {
  std::vector<Reference::Fetch> fetches;
  std::vector<async::Future<T>> values;
  values.reserve(references.size());
  for (const RRef<T>& reference : references) {
    values.push_back(reference.is_owner() ? reference.ToHereAsync(timeout)
                                          : reference.AddFetch(fetches));
  }
  std::shared_ptr<async::WaitPoller> poller =
      Reference::Request(std::move(fetches), timeout);
  async::Future<std::vector<T>> all = async::JoinAll(std::move(values));
  all.SetWaitPoller(std::move(poller));
  return all;
}

}  // namespace internal

}  // namespace hawser::rref

template <class T>
struct hawser::rpc::WireTraits<hawser::rref::RRef<T>> {
  static std::string TypeName() { return "RRef<" + rpc::TypeName<T>() + ">"; }
  static absl::Status Encode(Encoder& encoder,
                             const hawser::rref::RRef<T>& rref) {
    return hawser::rref::EncodeReference(encoder, rref.reference().get());
  }
  static absl::StatusOr<hawser::rref::RRef<T>> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(std::shared_ptr<hawser::rref::Reference> reference,
                     hawser::rref::DecodeReference(decoder));
    return hawser::rref::RRef<T>(std::move(reference));
  }
};

#endif  // HAWSER_RREF_RREF_H_
