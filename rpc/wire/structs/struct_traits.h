#ifndef HAWSER_RPC_WIRE_STRUCTS_STRUCT_TRAITS_H_
#define HAWSER_RPC_WIRE_STRUCTS_STRUCT_TRAITS_H_

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/structs/type_definitions.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {

// A field of a struct that is sent: a data member, and its name in signatures
// and in JSON.
template <class T, class M>
struct Field {
  using Struct = T;
  using Member = M;

  // `field_name` must be a literal.
  constexpr Field(std::string_view field_name, M T::*data_member)
      : name(field_name), member(data_member) {}

  std::string_view name;
  M T::*member;
};

// Base of the WireTraits of a struct, which declare its fields:
//
//   template <>
//   struct hawser::rpc::WireTraits<Point> : hawser::rpc::StructTraits<Point> {
//     static std::string TypeName() { return "geometry.Point"; }
//     static constexpr auto kFields =
//         std::tuple{Field{"x", &Point::x}, Field{"y", &Point::y}};
//     // Optional: refuses values from a peer, who is not trusted.
//     static absl::Status Check(const Point& point);
//   };
//
// The fields are part of signatures, so a call between workers with different
// fields is kInvalidArgument; `hawser call` takes the struct as a JSON object.
// The struct must be default-constructible; members that are not declared keep
// their initial values. A field's type is any WireType, also a container of the
// struct itself.
//
// A struct travels as the list of its fields, in order. Errors of encoding and
// decoding name the type and the field.
template <class T>
struct StructTraits {
  static absl::Status Encode(Encoder& encoder, const T& value);
  static absl::StatusOr<T> Decode(Decoder& decoder);
  static void AddDefinitions(TypeDefinitions& definitions);
};

// --- Implementation.

namespace internal {

// `status` of the field or, if `field` is empty, of the whole struct.
absl::Status InStruct(std::string_view type, std::string_view field,
                      const absl::Status& status);

constexpr bool IsIdentifier(std::string_view name) {
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '_') return false;
  }
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9');
}

// Whether all names are different identifiers.
template <class... F>
constexpr bool NamesAreValid(const std::tuple<F...>& fields) {
  const auto count = [&](std::string_view name) {
    return std::apply(
        [&](const F&... field) { return (0 + ... + (field.name == name)); },
        fields);
  };
  return std::apply(
      [&](const F&... field) {
        return (true && ... &&
                (IsIdentifier(field.name) && count(field.name) == 1));
      },
      fields);
}

// Calls `visit` with each field of T until it returns an error.
template <class T, class Visit>
absl::Status ForEachField(Visit visit) {
  static_assert(NamesAreValid(WireTraits<T>::kFields),
                "the names of fields must be different identifiers");
  absl::Status status;
  std::apply(
      [&](const auto&... field) {
        (void)(true && ... && (status = visit(field)).ok());
      },
      WireTraits<T>::kFields);
  return status;
}

}  // namespace internal

template <class T>
absl::Status StructTraits<T>::Encode(Encoder& encoder, const T& value) {
  encoder.BeginList();
  RETURN_IF_ERROR(internal::ForEachField<T>([&]<class F>(const F& field) {
    const absl::Status status =
        WireTraits<typename F::Member>::Encode(encoder, value.*field.member);
    if (status.ok()) return status;
    return internal::InStruct(WireTraits<T>::TypeName(), field.name, status);
  }));
  encoder.EndList();
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<T> StructTraits<T>::Decode(Decoder& decoder) {
  static_assert(std::default_initializable<T>,
                "a struct that is sent must be default-constructible");
  const auto in_struct = [](const absl::Status& status) {
    return internal::InStruct(WireTraits<T>::TypeName(), "", status);
  };
  if (absl::Status status = decoder.EnterList(); !status.ok()) {
    return in_struct(status);
  }
  T value{};
  RETURN_IF_ERROR(
      internal::ForEachField<T>([&]<class F>(const F& field) -> absl::Status {
        absl::StatusOr<typename F::Member> member =
            WireTraits<typename F::Member>::Decode(decoder);
        if (!member.ok()) {
          return internal::InStruct(WireTraits<T>::TypeName(), field.name,
                                    member.status());
        }
        value.*field.member = *std::move(member);
        return absl::OkStatus();
      }));
  if (absl::Status status = decoder.Leave(); !status.ok()) {
    return in_struct(status);
  }
  if constexpr (requires { WireTraits<T>::Check(value); }) {
    if (absl::Status status = WireTraits<T>::Check(value); !status.ok()) {
      return in_struct(status);
    }
  }
  return value;
}

template <class T>
void StructTraits<T>::AddDefinitions(TypeDefinitions& definitions) {
  std::string fields;
  (void)internal::ForEachField<T>([&]<class F>(const F& field) {
    if (!fields.empty()) fields += ", ";
    fields += field.name;
    fields += ": ";
    fields += WireTraits<typename F::Member>::TypeName();
    return absl::OkStatus();
  });
  // Before those of the fields, so that the recursion ends.
  std::string definition = WireTraits<T>::TypeName();
  definition += "{";
  definition += fields;
  definition += "}";
  if (!definitions.Add(std::move(definition))) return;
  (void)internal::ForEachField<T>([&]<class F>(const F&) {
    internal::AddDefinitions<typename F::Member>(definitions);
    return absl::OkStatus();
  });
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_STRUCTS_STRUCT_TRAITS_H_
