// Declarations of remote functions.

#ifndef HAWSER_RPC_FUNCTIONS_FUNCTION_H_
#define HAWSER_RPC_FUNCTIONS_FUNCTION_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rpc/wire/structs/type_definitions.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {

namespace internal {

template <class T>
concept NamedType = requires {
  { T::kTypeName } -> std::convertible_to<std::string_view>;
};

}  // namespace internal

// The name of `T` in signatures. A type without WireTraits, which can only be a
// result kept behind a reference, declares `static constexpr std::string_view
// kTypeName`.
template <class T>
std::string TypeName() {
  if constexpr (std::is_void_v<T>) {
    return "void";
  } else if constexpr (WireType<T>) {
    return WireTraits<T>::TypeName();
  } else {
    static_assert(internal::NamedType<T>,
                  "a remote function's types need rpc::WireTraits<T>, or, for "
                  "results kept behind references, T::kTypeName");
    return std::string(T::kTypeName);
  }
}

template <class Signature>
class Function;

// Declaration of a typed remote function, identified by name:
//
//   inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kAdd{"example.Add"};
//
// The server's binary registers an implementation (FunctionRegistry); a
// caller's binary needs only the declaration. Parameters and result are value
// types.
template <class R, class... A>
class Function<R(A...)> {
  static_assert((std::is_same_v<A, std::decay_t<A>> && ...),
                "parameters of a remote function are values, not references");

 public:
  using Result = R;

  // `name` must be a literal, or outlive the declaration.
  constexpr explicit Function(std::string_view name) : name_(name) {}

  constexpr std::string_view name() const { return name_; }

  // "Tensor(Tensor, int64)", followed by the fields of the structs in it
  // (rpc/wire/structs/type_definitions.h).
  static const std::string& Signature() {
    static const std::string* const signature = [] {
      std::string text = TypeName<R>();
      text += "(";
      ((text += TypeName<A>(), text += ", "), ...);
      if constexpr (sizeof...(A) > 0) text.resize(text.size() - 2);
      text += ")";
      TypeDefinitions definitions;
      internal::AddDefinitions<R>(definitions);
      (internal::AddDefinitions<A>(definitions), ...);
      text += definitions.ToString();
      return new std::string(std::move(text));
    }();
    return *signature;
  }

 private:
  std::string_view name_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_FUNCTION_H_
