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
#include "rref/reference.h"
#include "rref/reference_codec.h"

namespace hawser::rref {

// The object on which a method is called (rref/method.h). It is sent as a
// reference to its owner and decoded there as the object itself. A handle;
// constant.
template <class T>
class MethodTarget {
 public:
  explicit MethodTarget(std::shared_ptr<const Reference> reference)
      : reference_(std::move(reference)) {}

  const Reference* reference() const { return reference_.get(); }

  // For the owner, in a function that was called with it.
  std::shared_ptr<T> Object() const {
    return std::static_pointer_cast<T>(
        reference_->value()->future().result()->value);
  }

 private:
  std::shared_ptr<const Reference> reference_;
};

}  // namespace hawser::rref

template <class T>
struct hawser::rpc::WireTraits<hawser::rref::MethodTarget<T>> {
  static std::string TypeName() { return rpc::TypeName<T>() + "&"; }
  static absl::Status Encode(Encoder& encoder,
                             const hawser::rref::MethodTarget<T>& target) {
    return hawser::rref::EncodeReference(encoder, target.reference());
  }
  // The function runs once the object has been created, or fails with its
  // error.
  static absl::StatusOr<hawser::rref::MethodTarget<T>> Decode(
      Decoder& decoder) {
    ASSIGN_OR_RETURN(std::shared_ptr<hawser::rref::Reference> reference,
                     hawser::rref::DecodeReference(decoder));
    RETURN_IF_ERROR(reference->CheckIsOwner());
    decoder.AddPrerequisite(reference->value()->future().Then(
        [reference](absl::StatusOr<ErasedValue> value) -> absl::Status {
          RETURN_IF_ERROR(value);
          return hawser::rref::CheckType(*reference, value->type->name,
                                         rpc::TypeName<T>());
        }));
    return hawser::rref::MethodTarget<T>(std::move(reference));
  }
};

#endif  // HAWSER_RREF_METHOD_TARGET_H_
