#include "cli/json_value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "cli/json_tensor.h"

namespace hawser::cli {
namespace {

using nlohmann::json;

bool IsInteger(const std::string& name, const std::string& prefix) {
  return name == prefix + "8" || name == prefix + "16" ||
         name == prefix + "32" || name == prefix + "64";
}
bool IsSigned(const TypeName& type) { return IsInteger(type.name, "int"); }
bool IsUnsigned(const TypeName& type) { return IsInteger(type.name, "uint"); }
bool IsFloating(const TypeName& type) {
  return type.name == "float" || type.name == "double";
}

// The error for a value that is not of type `type`.
absl::Status Wants(const std::string& place, const TypeName& type,
                   const json& value) {
  return absl::InvalidArgumentError(
      absl::StrCat(place, " must be ", ToString(type), ", not ", value.dump()));
}

// The bytes of {"base64": ...}; unset for other values.
std::optional<std::string> Base64Of(const json& value) {
  if (!value.is_object() || !value.contains("base64") ||
      !value["base64"].is_string()) {
    return std::nullopt;
  }
  std::string bytes;
  if (!absl::Base64Unescape(value["base64"].get<std::string>(), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

// Whether both ends know the encoding of `type` without WireTraits of a user.
bool IsBuiltIn(const TypeName& type) {
  if (type.parameters.empty()) {
    return type.name == "bool" || type.name == "string" ||
           type.name == "Tensor" || IsSigned(type) || IsUnsigned(type) ||
           IsFloating(type);
  }
  return type.name == "list" || type.name == "tuple" || type.name == "map" ||
         type.name == "optional";
}

// Whether `value` is {"type": "...", "value": ...}.
bool IsTyped(const json& value) {
  return value.is_object() && value.size() == 2 && value.contains("type") &&
         value["type"].is_string() && value.contains("value");
}

json ToBase64(const std::string& bytes) {
  return {{"base64", absl::Base64Escape(bytes)}};
}

bool FitsUnsigned(const json& value) { return value.is_number_unsigned(); }
bool FitsSigned(const json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
}

// Writes values into one request.
class Writer {
 public:
  explicit Writer(v1::CallRequest& request) : request_(request) {}

  absl::Status Write(const json& in, const TypeName& type,
                     const std::string& place, v1::Value& out) {
    if (!IsBuiltIn(type) && IsTyped(in)) {
      ASSIGN_OR_RETURN(const TypeName wire_type,
                       ParseType(in["type"].get<std::string>()));
      return Write(in["value"], wire_type, place, out);
    }
    if (type.parameters.empty()) return WriteScalar(in, type, place, out);
    if (type.name == "optional") {
      if (!in.is_null()) return Write(in, type.parameters[0], place, out);
      out.mutable_null_value();
      return absl::OkStatus();
    }
    if (type.name == "list") return WriteList(in, type, place, out);
    if (type.name == "tuple") return WriteTuple(in, type, place, out);
    if (type.name == "map" && type.parameters.size() == 2) {
      return WriteMap(in, type, place, out);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        place, " is a ", ToString(type), ", which JSON does not support"));
  }

 private:
  absl::Status WriteScalar(const json& in, const TypeName& type,
                           const std::string& place, v1::Value& out) {
    double number = 0;
    if (type.name == "bool") {
      if (!in.is_boolean()) return Wants(place, type, in);
      out.set_bool_value(in.get<bool>());
    } else if (IsSigned(type)) {
      if (!FitsSigned(in)) return Wants(place, type, in);
      out.set_int_value(in.get<int64_t>());
    } else if (IsUnsigned(type)) {
      if (!FitsUnsigned(in)) return Wants(place, type, in);
      out.set_uint_value(in.get<uint64_t>());
    } else if (IsFloating(type)) {
      if (!NumberFromJson(in, number)) return Wants(place, type, in);
      out.set_double_value(number);
    } else if (type.name == "Tensor") {
      return WriteTensor(in, place, out);
    } else if (type.name == "string") {
      if (std::optional<std::string> bytes = Base64Of(in)) {
        out.set_bytes_value(*std::move(bytes));
      } else if (in.is_string()) {
        out.set_string_value(in.get<std::string>());
      } else {
        return Wants(place, type, in);
      }
    } else if (std::optional<std::string> bytes = Base64Of(in)) {
      out.mutable_message_value()->set_type(type.name);
      out.mutable_message_value()->set_data(*std::move(bytes));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          place, " is a ", type.name,
          ": write the value that it travels as, such as {\"type\": "
          "\"tuple<int64, string>\", \"value\": [1, \"a\"]}, or a protobuf "
          "message as {\"base64\": \"...\"}"));
    }
    return absl::OkStatus();
  }

  absl::Status WriteTensor(const json& in, const std::string& place,
                           v1::Value& out) {
    if (in.is_null()) {
      out.mutable_null_value();
      return absl::OkStatus();
    }
    absl::StatusOr<WireTensor> tensor = TensorFromJson(in);
    if (!tensor.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": ", tensor.status().message()));
    }
    out.set_tensor_index(static_cast<uint32_t>(request_.tensors_size()));
    *request_.add_tensors() = std::move(tensor->header);
    *request_.add_tensor_data() = std::move(tensor->data);
    return absl::OkStatus();
  }

  // Lists of numbers are sent packed.
  absl::Status WriteList(const json& in, const TypeName& type,
                         const std::string& place, v1::Value& out) {
    if (!in.is_array()) return Wants(place, type, in);
    const TypeName& of = type.parameters[0];
    v1::Value packed;
    if (IsSigned(of)) out.mutable_int_list();
    if (IsUnsigned(of)) out.mutable_uint_list();
    if (IsFloating(of)) out.mutable_double_list();
    if (!IsSigned(of) && !IsUnsigned(of) && !IsFloating(of)) {
      out.mutable_list_value();
    }
    for (size_t i = 0; i < in.size(); ++i) {
      v1::Value element;
      RETURN_IF_ERROR(
          Write(in[i], of, absl::StrCat(place, "[", i, "]"), element));
      switch (out.kind_case()) {
        case v1::Value::kIntList:
          out.mutable_int_list()->add_values(element.int_value());
          break;
        case v1::Value::kUintList:
          out.mutable_uint_list()->add_values(element.uint_value());
          break;
        case v1::Value::kDoubleList:
          out.mutable_double_list()->add_values(element.double_value());
          break;
        default:
          *out.mutable_list_value()->add_values() = std::move(element);
      }
    }
    return absl::OkStatus();
  }

  absl::Status WriteTuple(const json& in, const TypeName& type,
                          const std::string& place, v1::Value& out) {
    if (!in.is_array() || in.size() != type.parameters.size()) {
      return Wants(place, type, in);
    }
    out.mutable_list_value();
    for (size_t i = 0; i < in.size(); ++i) {
      RETURN_IF_ERROR(Write(in[i], type.parameters[i],
                            absl::StrCat(place, "[", i, "]"),
                            *out.mutable_list_value()->add_values()));
    }
    return absl::OkStatus();
  }

  absl::Status WriteMap(const json& in, const TypeName& type,
                        const std::string& place, v1::Value& out) {
    json pairs = json::array();
    if (in.is_object()) {
      for (const auto& [key, value] : in.items()) pairs.push_back({key, value});
    } else {
      pairs = in;
    }
    if (!pairs.is_array()) return Wants(place, type, in);
    out.mutable_map_value();
    for (const json& pair : pairs) {
      if (!pair.is_array() || pair.size() != 2) return Wants(place, type, in);
      v1::ValueEntry& entry = *out.mutable_map_value()->add_entries();
      RETURN_IF_ERROR(Write(pair[0], type.parameters[0],
                            absl::StrCat(place, "'s key"),
                            *entry.mutable_key()));
      RETURN_IF_ERROR(Write(pair[1], type.parameters[1],
                            absl::StrCat(place, "[", pair[0].dump(), "]"),
                            *entry.mutable_value()));
    }
    return absl::OkStatus();
  }

  v1::CallRequest& request_;
};

template <class Numbers>
json ToList(const Numbers& numbers) {
  json list = json::array();
  for (const auto number : numbers) list.push_back(number);
  return list;
}

// Recursion is bounded by protobuf's limit on nested messages.
absl::StatusOr<json> ToJson(const v1::Value& value,
                            const v1::CallReply& reply) {
  json result;
  switch (value.kind_case()) {
    case v1::Value::kNullValue:
      return result;
    case v1::Value::kBoolValue:
      return json(value.bool_value());
    case v1::Value::kIntValue:
      return json(value.int_value());
    case v1::Value::kUintValue:
      return json(value.uint_value());
    case v1::Value::kDoubleValue:
      return NumberToJson(value.double_value());
    case v1::Value::kStringValue:
      return json(value.string_value());
    case v1::Value::kBytesValue:
      return ToBase64(value.bytes_value());
    case v1::Value::kTensorIndex: {
      const uint32_t index = value.tensor_index();
      if (index >= static_cast<uint32_t>(reply.tensors_size()) ||
          index >= static_cast<uint32_t>(reply.tensor_data_size())) {
        return absl::InternalError(
            "the reply refers to a tensor that it does not contain");
      }
      return TensorToJson(reply.tensors(static_cast<int>(index)),
                          reply.tensor_data(static_cast<int>(index)));
    }
    case v1::Value::kListValue:
      result = json::array();
      for (const v1::Value& element : value.list_value().values()) {
        ASSIGN_OR_RETURN(json item, ToJson(element, reply));
        result.push_back(std::move(item));
      }
      return result;
    case v1::Value::kMapValue: {
      json pairs = json::array();
      bool by_name = true;
      for (const v1::ValueEntry& entry : value.map_value().entries()) {
        ASSIGN_OR_RETURN(json key, ToJson(entry.key(), reply));
        ASSIGN_OR_RETURN(json item, ToJson(entry.value(), reply));
        by_name = by_name && key.is_string();
        pairs.push_back({std::move(key), std::move(item)});
      }
      if (!by_name) return pairs;
      result = json::object();
      for (json& pair : pairs) {
        result[pair[0].get<std::string>()] = std::move(pair[1]);
      }
      return result;
    }
    case v1::Value::kMessageValue:
      result = ToBase64(value.message_value().data());
      result["message"] = value.message_value().type();
      return result;
    case v1::Value::kIntList:
      return ToList(value.int_list().values());
    case v1::Value::kUintList:
      return ToList(value.uint_list().values());
    case v1::Value::kDoubleList:
      result = json::array();
      for (const double number : value.double_list().values()) {
        result.push_back(NumberToJson(number));
      }
      return result;
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("the reply contains a value of unknown kind");
}

}  // namespace

absl::Status AddArgument(const json& value, const TypeName& type,
                         v1::CallRequest& request) {
  v1::ValueList& arguments = *request.mutable_arguments();
  const std::string place =
      absl::StrCat("argument ", arguments.values_size() + 1);
  return Writer(request).Write(value, type, place, *arguments.add_values());
}

absl::StatusOr<json> ResultOf(const v1::CallReply& reply) {
  if (reply.results().values().empty()) return json();
  if (reply.results().values_size() > 1) {
    return absl::InternalError("the reply contains more than one result");
  }
  return ToJson(reply.results().values(0), reply);
}

}  // namespace hawser::cli
