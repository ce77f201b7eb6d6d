// A value whose type is known only at run time.

#ifndef HAWSER_RPC_FUNCTIONS_ERASED_VALUE_H_
#define HAWSER_RPC_FUNCTIONS_ERASED_VALUE_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "rpc/functions/function.h"
#include "rpc/wire/checked_traits.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {

class Encoder;

// Run-time description of a type returned by registered functions. One object
// per type and binary; compare `name`, not addresses.
struct ValueType {
  std::string name;
  // Writes the value; null if the type has no WireTraits.
  absl::Status (*encode)(Encoder&, const void*);
  // Whether encoding takes about a microsecond for any value: true for numbers,
  // and for tensors, whose elements are not copied.
  bool quick_to_encode = false;
};

// The result of a registered function, before encoding.
struct ErasedValue {
  // A `T`; null if the function returns nothing.
  std::shared_ptr<void> value;
  // Never null; lives as long as the process.
  const ValueType* type = nullptr;
};

template <class T>
const ValueType* ValueTypeOf() {
  static const ValueType* const type = [] {
    auto* made = new ValueType{TypeName<T>(), nullptr,
                               std::is_void_v<T> || std::is_arithmetic_v<T> ||
                                   std::is_same_v<T, tensor::Tensor>};
    if constexpr (std::is_void_v<T>) {
      made->encode = [](Encoder&, const void*) { return absl::OkStatus(); };
    } else if constexpr (WireType<T>) {
      made->encode = [](Encoder& encoder, const void* value) {
        return internal::Encode(encoder, *static_cast<const T*>(value));
      };
    }
    return made;
  }();
  return type;
}

template <class T>
ErasedValue Erase(T value) {
  return {std::make_shared<T>(std::move(value)), ValueTypeOf<T>()};
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_ERASED_VALUE_H_
