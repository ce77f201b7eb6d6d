// Encoding of C++ types as arguments and results.

#ifndef HAWSER_RPC_WIRE_WIRE_TRAITS_H_
#define HAWSER_RPC_WIRE_WIRE_TRAITS_H_

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/protobuf_message.h"
#include "rpc/wire/structs/type_definitions.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// Extension point: a specialisation makes a type usable in calls. That of a
// struct declares its fields (rpc/wire/structs/struct_traits.h); any other type
// encodes and decodes itself:
//
//   template <>
//   struct hawser::rpc::WireTraits<Point> {
//     // The same in every binary and language; part of signatures.
//     static std::string TypeName() { return "geometry.Point"; }
//     // Writes exactly one value.
//     static absl::Status Encode(Encoder& encoder, const Point& point);
//     // Reads exactly one value, which comes from an untrusted peer.
//     static absl::StatusOr<Point> Decode(Decoder& decoder);
//   };
//
// Built in: bool, integers, float, double, std::string, Tensor, std::vector,
// std::map, std::unordered_map, std::optional, std::pair, std::tuple and
// protobuf messages, of all of these.
template <class T>
struct WireTraits;

// A type that can be an argument or a result.
template <class T>
concept WireType = std::movable<T> &&
    requires(Encoder& encoder, Decoder& decoder, const T& value) {
  { WireTraits<T>::TypeName() } -> std::convertible_to<std::string>;
  { WireTraits<T>::Encode(encoder, value) } -> std::same_as<absl::Status>;
  { WireTraits<T>::Decode(decoder) } -> std::same_as<absl::StatusOr<T>>;
};

namespace internal {

absl::Status IntegerOutOfRange(std::string_view type);
absl::Status RepeatedKey();
absl::Status NullInOptional(std::string_view type);

// Adds the definitions of the structs in `T`.
template <class T>
void AddDefinitions(TypeDefinitions& definitions) {
  if constexpr (!std::is_void_v<T>) {
    if constexpr (requires { WireTraits<T>::AddDefinitions(definitions); }) {
      WireTraits<T>::AddDefinitions(definitions);
    }
  }
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
inline constexpr std::string_view kIntegerName =
    std::is_signed_v<T> ? (sizeof(T) == 1   ? "int8"
                           : sizeof(T) == 2 ? "int16"
                           : sizeof(T) == 4 ? "int32"
                                            : "int64")
                        : (sizeof(T) == 1   ? "uint8"
                           : sizeof(T) == 2 ? "uint16"
                           : sizeof(T) == 4 ? "uint32"
                                            : "uint64");

}  // namespace internal

template <>
struct WireTraits<bool> {
  static std::string TypeName() { return "bool"; }
  static absl::Status Encode(Encoder& encoder, bool value) {
    encoder.WriteBool(value);
    return absl::OkStatus();
  }
  static absl::StatusOr<bool> Decode(Decoder& decoder) {
    return decoder.ReadBool();
  }
};

template <std::integral T>
struct WireTraits<T> {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;

  static std::string TypeName() {
    return std::string(internal::kIntegerName<T>);
  }
  static absl::Status Encode(Encoder& encoder, T value) {
    if constexpr (std::is_signed_v<T>) {
      encoder.WriteInt(value);
    } else {
      encoder.WriteUint(value);
    }
    return absl::OkStatus();
  }
  static absl::StatusOr<T> Decode(Decoder& decoder) {
    Wide wide{};
    if constexpr (std::is_signed_v<T>) {
      ASSIGN_OR_RETURN(wide, decoder.ReadInt());
    } else {
      ASSIGN_OR_RETURN(wide, decoder.ReadUint());
    }
    return Narrow(wide);
  }
  static absl::StatusOr<T> Narrow(Wide wide) {
    if (!std::in_range<T>(wide)) {
      return internal::IntegerOutOfRange(internal::kIntegerName<T>);
    }
    return static_cast<T>(wide);
  }
};

template <std::floating_point T>
requires(sizeof(T) <= sizeof(double)) struct WireTraits<T> {
  static std::string TypeName() {
    return std::is_same_v<T, float> ? "float" : "double";
  }
  static absl::Status Encode(Encoder& encoder, T value) {
    encoder.WriteDouble(value);
    return absl::OkStatus();
  }
  static absl::StatusOr<T> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(const double wide, decoder.ReadDouble());
    return static_cast<T>(wide);
  }
};

template <>
struct WireTraits<std::string> {
  static std::string TypeName() { return "string"; }
  static absl::Status Encode(Encoder& encoder, const std::string& value) {
    encoder.WriteString(value);
    return absl::OkStatus();
  }
  static absl::StatusOr<std::string> Decode(Decoder& decoder) {
    return decoder.ReadString();
  }
};

template <>
struct WireTraits<tensor::Tensor> {
  static std::string TypeName() { return "Tensor"; }
  static absl::Status Encode(Encoder& encoder, const tensor::Tensor& value) {
    encoder.WriteTensor(value);
    return absl::OkStatus();
  }
  static absl::StatusOr<tensor::Tensor> Decode(Decoder& decoder) {
    return decoder.ReadTensor();
  }
};

template <internal::ProtobufMessage T>
struct WireTraits<T> {
  static std::string TypeName() { return T().GetTypeName(); }
  static absl::Status Encode(Encoder& encoder, const T& value) {
    std::string bytes;
    if (!value.SerializeToString(&bytes)) {
      return internal::UnserializableMessage(value.GetTypeName());
    }
    encoder.WriteMessage(value.GetTypeName(), bytes);
    return absl::OkStatus();
  }
  static absl::StatusOr<T> Decode(Decoder& decoder) {
    T value;
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     decoder.ReadMessage(value.GetTypeName()));
    if (!value.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return internal::UnparsableMessage(value.GetTypeName());
    }
    return value;
  }
};

// Lists of numbers are encoded packed.
template <class T>
struct WireTraits<std::vector<T>> {
  static std::string TypeName() {
    return "list<" + WireTraits<T>::TypeName() + ">";
  }
  static void AddDefinitions(TypeDefinitions& definitions) {
    internal::AddDefinitions<T>(definitions);
  }

  static absl::Status Encode(Encoder& encoder, const std::vector<T>& values) {
    if constexpr (std::floating_point<T>) {
      encoder.WriteDoubles(std::vector<double>(values.begin(), values.end()));
    } else if constexpr (kIsInteger && std::is_signed_v<T>) {
      encoder.WriteInts(std::vector<int64_t>(values.begin(), values.end()));
    } else if constexpr (kIsInteger) {
      encoder.WriteUints(std::vector<uint64_t>(values.begin(), values.end()));
    } else {
      encoder.BeginList();
      for (const T& value : values) {
        RETURN_IF_ERROR(WireTraits<T>::Encode(encoder, value));
      }
      encoder.EndList();
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<std::vector<T>> Decode(Decoder& decoder) {
    if constexpr (std::floating_point<T>) {
      ASSIGN_OR_RETURN(const std::vector<double> wide, decoder.ReadDoubles());
      return std::vector<T>(wide.begin(), wide.end());
    } else if constexpr (kIsInteger && std::is_signed_v<T>) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> wide, decoder.ReadInts());
      return NarrowAll(wide);
    } else if constexpr (kIsInteger) {
      ASSIGN_OR_RETURN(const std::vector<uint64_t> wide, decoder.ReadUints());
      return NarrowAll(wide);
    } else {
      RETURN_IF_ERROR(decoder.EnterList());
      std::vector<T> values;
      while (!decoder.AtEnd()) {
        ASSIGN_OR_RETURN(T value, WireTraits<T>::Decode(decoder));
        values.push_back(std::move(value));
      }
      RETURN_IF_ERROR(decoder.Leave());
      return values;
    }
  }

 private:
  static constexpr bool kIsInteger =
      std::integral<T> && !std::is_same_v<T, bool>;

  template <class Wide>
  static absl::StatusOr<std::vector<T>> NarrowAll(
      const std::vector<Wide>& wide) {
    std::vector<T> values;
    values.reserve(wide.size());
    for (Wide number : wide) {
      ASSIGN_OR_RETURN(const T value, WireTraits<T>::Narrow(number));
      values.push_back(value);
    }
    return values;
  }
};

namespace internal {

template <class Map>
struct MapTraits {
  using Key = typename Map::key_type;
  using Mapped = typename Map::mapped_type;

  static std::string TypeName() {
    return "map<" + WireTraits<Key>::TypeName() + ", " +
           WireTraits<Mapped>::TypeName() + ">";
  }
  static void AddDefinitions(TypeDefinitions& definitions) {
    internal::AddDefinitions<Key>(definitions);
    internal::AddDefinitions<Mapped>(definitions);
  }
  static absl::Status Encode(Encoder& encoder, const Map& map) {
    encoder.BeginMap();
    for (const auto& [key, value] : map) {
      encoder.BeginEntry();
      RETURN_IF_ERROR(WireTraits<Key>::Encode(encoder, key));
      RETURN_IF_ERROR(WireTraits<Mapped>::Encode(encoder, value));
      encoder.EndEntry();
    }
    encoder.EndMap();
    return absl::OkStatus();
  }
  static absl::StatusOr<Map> Decode(Decoder& decoder) {
    RETURN_IF_ERROR(decoder.EnterMap());
    Map map;
    while (!decoder.AtEnd()) {
      RETURN_IF_ERROR(decoder.EnterEntry());
      ASSIGN_OR_RETURN(Key key, WireTraits<Key>::Decode(decoder));
      ASSIGN_OR_RETURN(Mapped value, WireTraits<Mapped>::Decode(decoder));
      RETURN_IF_ERROR(decoder.Leave());
      if (!map.emplace(std::move(key), std::move(value)).second) {
        return RepeatedKey();
      }
    }
    RETURN_IF_ERROR(decoder.Leave());
    return map;
  }
};

template <class Tuple, class... T>
struct TupleTraits {
  static std::string TypeName() {
    std::string name = "tuple<";
    ((name += WireTraits<T>::TypeName() + ", "), ...);
    if constexpr (sizeof...(T) > 0) name.resize(name.size() - 2);
    return name + ">";
  }
  static void AddDefinitions(TypeDefinitions& definitions) {
    (internal::AddDefinitions<T>(definitions), ...);
  }
  static absl::Status Encode(Encoder& encoder, const Tuple& tuple) {
    encoder.BeginList();
    absl::Status status;
    std::apply(
        [&](const T&... element) {
          (void)((status = WireTraits<T>::Encode(encoder, element)).ok() &&
                 ...);
        },
        tuple);
    RETURN_IF_ERROR(status);
    encoder.EndList();
    return status;
  }
  static absl::StatusOr<Tuple> Decode(Decoder& decoder) {
    RETURN_IF_ERROR(decoder.EnterList());
    ASSIGN_OR_RETURN(std::tuple<T...> elements, DecodeSequence<T...>(decoder));
    RETURN_IF_ERROR(decoder.Leave());
    return std::make_from_tuple<Tuple>(std::move(elements));
  }

  // Reads the next values of `decoder`, in order.
  template <class... U>
  static absl::StatusOr<std::tuple<U...>> DecodeSequence(Decoder& decoder) {
    absl::Status status;
    std::tuple<std::optional<U>...> slots;
    auto decode = [&]<class V>(std::optional<V>& slot) {
      absl::StatusOr<V> value = WireTraits<V>::Decode(decoder);
      if (!value.ok()) {
        status = std::move(value).status();
        return false;
      }
      slot.emplace(std::move(value).value());
      return true;
    };
    std::apply([&](auto&... slot) { (void)(decode(slot) && ...); }, slots);
    RETURN_IF_ERROR(status);
    return std::apply(
        [](auto&... slot) { return std::tuple<U...>(std::move(*slot)...); },
        slots);
  }
};

}  // namespace internal

template <class K, class V>
struct WireTraits<std::map<K, V>> : internal::MapTraits<std::map<K, V>> {};
template <class K, class V>
struct WireTraits<std::unordered_map<K, V>>
    : internal::MapTraits<std::unordered_map<K, V>> {};

template <class A, class B>
struct WireTraits<std::pair<A, B>>
    : internal::TupleTraits<std::pair<A, B>, A, B> {};
template <class... T>
struct WireTraits<std::tuple<T...>>
    : internal::TupleTraits<std::tuple<T...>, T...> {};

// nullopt is encoded as null. Values that are themselves encoded as null, such
// as an undefined tensor, would be received as nullopt and are therefore
// kInvalidArgument. Optionals of optionals are not supported.
template <class T>
requires(!internal::kIsOptional<T>) struct WireTraits<std::optional<T>> {
  static std::string TypeName() {
    return "optional<" + WireTraits<T>::TypeName() + ">";
  }
  static void AddDefinitions(TypeDefinitions& definitions) {
    internal::AddDefinitions<T>(definitions);
  }
  static absl::Status Encode(Encoder& encoder, const std::optional<T>& value) {
    if (!value.has_value()) {
      encoder.WriteNull();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(WireTraits<T>::Encode(encoder, *value));
    if (encoder.last_is_null()) return internal::NullInOptional(TypeName());
    return absl::OkStatus();
  }
  static absl::StatusOr<std::optional<T>> Decode(Decoder& decoder) {
    if (decoder.NextIsNull()) {
      RETURN_IF_ERROR(decoder.ReadNull());
      return std::optional<T>();
    }
    ASSIGN_OR_RETURN(T value, WireTraits<T>::Decode(decoder));
    return std::optional<T>(std::move(value));
  }
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_WIRE_TRAITS_H_
