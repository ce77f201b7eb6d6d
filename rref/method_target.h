#ifndef HAWSER_RREF_METHOD_TARGET_H_
#define HAWSER_RREF_METHOD_TARGET_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/wire_traits.h"
#include "rref/access/async_shared_mutex.h"
#include "rref/owner_value.h"
#include "rref/reference.h"
#include "rref/reference_codec.h"

namespace hawser::rref {

// Access to the object that a method has from its start.
enum class MethodAccess { kNone, kShared, kExclusive };

// The object on which a method is called (rref/method.h). It is sent as a
// reference to its owner and decoded there as the object itself, with `kAccess`
// to it. A handle.
template <class T, MethodAccess kAccess = MethodAccess::kNone>
class MethodTarget {
 public:
  explicit MethodTarget(std::shared_ptr<const Reference> reference)
      : reference_(std::move(reference)) {
    if constexpr (kAccess != MethodAccess::kNone) {
      access_ = std::make_shared<AsyncSharedMutex::Holder>();
    }
  }

  const Reference* reference() const { return reference_.get(); }

  // For the owner, in a function that was called with it.
  const OwnerValue& value() const { return *reference_->value(); }
  std::shared_ptr<T> Object() const {
    return std::static_pointer_cast<T>(value().future().result()->value);
  }
  // To be called once: the access, which copies of this handle keep until then.
  // Null for kNone.
  AsyncSharedMutex::Holder TakeAccess() const {
    return access_ == nullptr ? nullptr : std::exchange(*access_, nullptr);
  }

  // Completes when the copies of this handle have the access.
  async::Future<void> Acquire() const {
    AsyncSharedMutex& lock = reference_->value()->lock();
    return (kAccess == MethodAccess::kShared ? lock.AcquireShared()
                                             : lock.AcquireExclusive())
        .Then([access =
                   access_](absl::StatusOr<AsyncSharedMutex::Holder> holder) {
          if (holder.ok()) *access = *std::move(holder);
          return holder.status();
        });
  }

 private:
  std::shared_ptr<const Reference> reference_;
  std::shared_ptr<AsyncSharedMutex::Holder> access_;
};

}  // namespace hawser::rref

template <class T, hawser::rref::MethodAccess kAccess>
struct hawser::rpc::WireTraits<hawser::rref::MethodTarget<T, kAccess>> {
  using Target = hawser::rref::MethodTarget<T, kAccess>;

  static std::string TypeName() { return rpc::TypeName<T>() + "&"; }
  static absl::Status Encode(Encoder& encoder, const Target& target) {
    return hawser::rref::EncodeReference(encoder, target.reference());
  }
  // The function runs once the object has been created and the access begins,
  // or fails with the object's error.
  static absl::StatusOr<Target> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(std::shared_ptr<hawser::rref::Reference> reference,
                     hawser::rref::DecodeReference(decoder));
    RETURN_IF_ERROR(reference->CheckIsOwner());
    decoder.AddPrerequisite(reference->value()->future().Then(
        [reference](absl::StatusOr<ErasedValue> value) -> absl::Status {
          RETURN_IF_ERROR(value);
          return hawser::rref::CheckType(*reference, value->type->name,
                                         rpc::TypeName<T>());
        }));
    Target target(std::move(reference));
    if constexpr (kAccess != hawser::rref::MethodAccess::kNone) {
      decoder.AddLastPrerequisite([target] { return target.Acquire(); });
    }
    return target;
  }
};

#endif  // HAWSER_RREF_METHOD_TARGET_H_
