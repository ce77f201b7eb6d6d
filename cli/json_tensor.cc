#include "cli/json_tensor.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::cli {
namespace {

using nlohmann::json;

constexpr int kMaxDims = 64;

struct Kind {
  const char* name;
  v1::DType dtype;
  size_t bytes;
};

constexpr Kind kKinds[] = {
    {"f32", v1::DTYPE_F32, 4}, {"f64", v1::DTYPE_F64, 8},
    {"f16", v1::DTYPE_F16, 2}, {"bf16", v1::DTYPE_BF16, 2},
    {"i64", v1::DTYPE_I64, 8}, {"i32", v1::DTYPE_I32, 4},
    {"u8", v1::DTYPE_U8, 1},   {"bool", v1::DTYPE_BOOL, 1},
};

const Kind* FindKind(v1::DType dtype) {
  for (const Kind& kind : kKinds) {
    if (kind.dtype == dtype) return &kind;
  }
  return nullptr;
}

// Unset if a dimension is negative or the product overflows.
std::optional<int64_t> Product(
    const google::protobuf::RepeatedField<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product)) {
      return std::nullopt;
    }
  }
  return product;
}

template <class T>
void Append(T value, std::string& data) {
  data.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T>
bool AppendInteger(const json& element, std::string& data) {
  if (!element.is_number_integer()) return false;
  if (element.is_number_unsigned() &&
      element.get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<T>::max())) {
    return false;
  }
  const auto wide = element.get<int64_t>();
  if (!element.is_number_unsigned() && (wide < std::numeric_limits<T>::min() ||
                                        wide > std::numeric_limits<T>::max())) {
    return false;
  }
  Append(static_cast<T>(wide), data);
  return true;
}

absl::Status AppendElement(const json& element, const Kind& kind,
                           std::string& data) {
  bool fits = false;
  double number = 0;
  switch (kind.dtype) {
    case v1::DTYPE_F32:
      fits = NumberFromJson(element, number);
      Append(static_cast<float>(number), data);
      break;
    case v1::DTYPE_F64:
      fits = NumberFromJson(element, number);
      Append(number, data);
      break;
    case v1::DTYPE_I64:
      fits = AppendInteger<int64_t>(element, data);
      break;
    case v1::DTYPE_I32:
      fits = AppendInteger<int32_t>(element, data);
      break;
    case v1::DTYPE_U8:
      fits = AppendInteger<uint8_t>(element, data);
      break;
    case v1::DTYPE_BOOL:
      fits = element.is_boolean();
      Append(static_cast<char>(fits && element.get<bool>()), data);
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "tensors of ", kind.name, " are not supported in JSON: use f32"));
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a tensor of ", kind.name, " cannot hold ", element.dump()));
}

// Stores the lengths of nested lists in `dims`, and their elements, in order,
// in `elements`.
absl::Status Flatten(const json& value, int depth,
                     google::protobuf::RepeatedField<int64_t>& dims,
                     std::vector<const json*>& elements) {
  if (!value.is_array()) {
    if (depth != dims.size()) {
      return absl::InvalidArgumentError("nested lists differ in depth");
    }
    elements.push_back(&value);
    return absl::OkStatus();
  }
  if (depth >= kMaxDims) {
    return absl::InvalidArgumentError("a tensor has too many dimensions");
  }
  const auto length = static_cast<int64_t>(value.size());
  if (depth == dims.size() && elements.empty()) dims.Add(length);
  if (depth >= dims.size() || dims[depth] != length) {
    return absl::InvalidArgumentError("nested lists differ in length or depth");
  }
  for (const json& part : value) {
    RETURN_IF_ERROR(Flatten(part, depth + 1, dims, elements));
  }
  return absl::OkStatus();
}

template <class T>
T Load(const std::string& data, size_t index) {
  T value{};
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const float magnitude =
      exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
      : exponent == 0
          ? std::ldexp(static_cast<float>(mantissa), -24)
          : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

float FromBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

json ElementToJson(v1::DType dtype, const std::string& data, size_t index) {
  switch (dtype) {
    case v1::DTYPE_F32:
      return NumberToJson(Load<float>(data, index));
    case v1::DTYPE_F64:
      return NumberToJson(Load<double>(data, index));
    case v1::DTYPE_F16:
      return NumberToJson(FromHalf(Load<uint16_t>(data, index)));
    case v1::DTYPE_BF16:
      return NumberToJson(FromBfloat16(Load<uint16_t>(data, index)));
    case v1::DTYPE_I64:
      return Load<int64_t>(data, index);
    case v1::DTYPE_I32:
      return Load<int32_t>(data, index);
    case v1::DTYPE_BOOL:
      return Load<uint8_t>(data, index) != 0;
    default:
      return Load<uint8_t>(data, index);
  }
}

}  // namespace

bool NumberFromJson(const json& value, double& number) {
  if (value.is_number()) {
    number = value.get<double>();
    return true;
  }
  for (const auto& [name, special] :
       {std::pair{"nan", static_cast<double>(NAN)},
        std::pair{"inf", static_cast<double>(INFINITY)},
        std::pair{"-inf", -static_cast<double>(INFINITY)}}) {
    if (value == name) {
      number = special;
      return true;
    }
  }
  return false;
}

json NumberToJson(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

absl::StatusOr<WireTensor> TensorFromJson(const json& value) {
  WireTensor tensor;
  std::vector<const json*> elements;
  const Kind* kind = FindKind(v1::DTYPE_F32);
  if (value.is_object()) {
    const json dtype = value.value("dtype", json("f32"));
    kind = nullptr;
    for (const Kind& candidate : kKinds) {
      if (dtype == candidate.name) kind = &candidate;
    }
    if (kind == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensors do not support dtype ", dtype.dump()));
    }
    const auto shape = value.find("shape");
    const auto data = value.find("data");
    if (shape == value.end() || !shape->is_array() || data == value.end() ||
        !data->is_array()) {
      return absl::InvalidArgumentError(
          "a tensor requires \"shape\" and \"data\", both lists");
    }
    for (const json& dim : *shape) {
      if (!dim.is_number_integer()) {
        return absl::InvalidArgumentError("a tensor's shape must be integers");
      }
      tensor.header.add_dims(dim.get<int64_t>());
    }
    for (const json& element : *data) elements.push_back(&element);
  } else {
    RETURN_IF_ERROR(Flatten(value, 0, *tensor.header.mutable_dims(), elements));
  }
  tensor.header.set_dtype(kind->dtype);
  if (Product(tensor.header.dims()) != static_cast<int64_t>(elements.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor's shape does not fit its ", elements.size(), " elements"));
  }
  for (const json* element : elements) {
    RETURN_IF_ERROR(AppendElement(*element, *kind, tensor.data));
  }
  return tensor;
}

absl::StatusOr<json> TensorToJson(const v1::TensorHeader& header,
                                  const std::string& data) {
  const Kind* kind = FindKind(header.dtype());
  if (kind == nullptr || data.size() % kind->bytes != 0 ||
      Product(header.dims()) !=
          static_cast<int64_t>(data.size() / kind->bytes)) {
    return absl::InternalError(
        "the header of a tensor in the reply does not match its data");
  }
  json elements = json::array();
  for (size_t i = 0; i < data.size() / kind->bytes; ++i) {
    elements.push_back(ElementToJson(kind->dtype, data, i));
  }
  json shape = json::array();
  for (const int64_t dim : header.dims()) shape.push_back(dim);
  return json{{"dtype", kind->name},
              {"shape", std::move(shape)},
              {"data", std::move(elements)}};
}

}  // namespace hawser::cli
