#include "cli/json_value.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "cli/closest_word.h"
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
absl::Status Wants(const std::string& place, std::string_view type,
                   const json& value) {
  return absl::InvalidArgumentError(
      absl::StrCat(place, " must be ", std::string(type), ", not ",
                   value.dump(-1, ' ', false, json::error_handler_t::replace)));
}
absl::Status Wants(const std::string& place, const TypeName& type,
                   const json& value) {
  return Wants(place, ToString(type), value);
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

// The fields of a struct; null for other types.
const std::vector<FieldType>* FieldsOf(const TypeName& type,
                                       const Definitions& definitions) {
  if (IsBuiltIn(type) || !type.parameters.empty()) return nullptr;
  const auto found = definitions.find(type.name);
  return found == definitions.end() ? nullptr : &found->second;
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
  Writer(const Definitions& definitions, v1::CallRequest& request)
      : definitions_(definitions), request_(request) {}

  absl::Status Write(const json& in, const TypeName& type,
                     const std::string& place, v1::Value& out) {
    if (const auto* fields = FieldsOf(type, definitions_)) {
      return WriteStruct(in, type.name, *fields, place, out);
    }
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

  // A struct travels as the list of its fields.
  absl::Status WriteStruct(const json& in, const std::string& type,
                           const std::vector<FieldType>& fields,
                           const std::string& place, v1::Value& out) {
    const std::string definition =
        absl::StrCat(type, "{", ToString(fields), "}");
    if (!in.is_object()) return Wants(place, definition, in);
    RETURN_IF_ERROR(CheckNames(in, fields, definition, place));
    out.mutable_list_value();
    for (const FieldType& field : fields) {
      const auto value = in.find(field.name);
      if (value == in.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, " does not have the field '", field.name,
                         "' of ", definition));
      }
      RETURN_IF_ERROR(Write(*value, field.type,
                            absl::StrCat(place, ".", field.name),
                            *out.mutable_list_value()->add_values()));
    }
    return absl::OkStatus();
  }

  // Checks that all names in `in` are those of fields.
  static absl::Status CheckNames(const json& in,
                                 const std::vector<FieldType>& fields,
                                 const std::string& definition,
                                 const std::string& place) {
    std::vector<std::string> names;
    for (const FieldType& field : fields) names.push_back(field.name);
    for (const auto& [name, value] : in.items()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::optional<std::string> closest = ClosestWord(name, names);
      return absl::InvalidArgumentError(absl::StrCat(
          place, " has a field '", name, "', which is not in ", definition,
          closest.has_value() ? absl::StrCat(": did you mean '", *closest, "'?")
                              : ""));
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

  const Definitions& definitions_;
  v1::CallRequest& request_;
};

template <class Numbers>
json ToList(const Numbers& numbers) {
  json list = json::array();
  for (const auto number : numbers) list.push_back(number);
  return list;
}

// Reads the values of one reply.
class Reader {
 public:
  Reader(const Definitions& definitions, const v1::CallReply& reply)
      : definitions_(definitions), reply_(reply) {}

  // `type` is null if it is not known, as for the parts of a user's type
  // without fields. Recursion is bounded by protobuf's limit on nested
  // messages.
  absl::StatusOr<json> Read(const v1::Value& value, const TypeName* type) {
    while (type != nullptr && type->name == "optional" &&
           type->parameters.size() == 1) {
      if (value.kind_case() == v1::Value::kNullValue) return json();
      type = &type->parameters[0];
    }
    if (type != nullptr) {
      if (const auto* fields = FieldsOf(*type, definitions_)) {
        return ReadStruct(value, type->name, *fields);
      }
    }
    switch (value.kind_case()) {
      case v1::Value::kNullValue:
        return json();
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
      case v1::Value::kTensorIndex:
        return ReadTensor(value.tensor_index());
      case v1::Value::kListValue:
        return ReadList(value.list_value(), type);
      case v1::Value::kMapValue:
        return ReadMap(value.map_value(), type);
      case v1::Value::kMessageValue: {
        json message = ToBase64(value.message_value().data());
        message["message"] = value.message_value().type();
        return message;
      }
      case v1::Value::kIntList:
        return ToList(value.int_list().values());
      case v1::Value::kUintList:
        return ToList(value.uint_list().values());
      case v1::Value::kDoubleList: {
        json numbers = json::array();
        for (const double number : value.double_list().values()) {
          numbers.push_back(NumberToJson(number));
        }
        return numbers;
      }
      case v1::Value::KIND_NOT_SET:
        break;
    }
    return absl::InternalError("the reply contains a value of unknown kind");
  }

 private:
  absl::StatusOr<json> ReadTensor(uint32_t index) const {
    if (index >= static_cast<uint32_t>(reply_.tensors_size()) ||
        index >= static_cast<uint32_t>(reply_.tensor_data_size())) {
      return absl::InternalError(
          "the reply refers to a tensor that it does not contain");
    }
    return TensorToJson(reply_.tensors(static_cast<int>(index)),
                        reply_.tensor_data(static_cast<int>(index)));
  }

  absl::StatusOr<json> ReadStruct(const v1::Value& value,
                                  const std::string& type,
                                  const std::vector<FieldType>& fields) {
    const v1::ValueList& list = value.list_value();
    if (!value.has_list_value() ||
        static_cast<size_t>(list.values_size()) != fields.size()) {
      return absl::InternalError(absl::StrCat("the reply contains a ", type,
                                              " without its fields ",
                                              ToString(fields)));
    }
    json result = json::object();
    for (size_t i = 0; i < fields.size(); ++i) {
      ASSIGN_OR_RETURN(result[fields[i].name],
                       Read(list.values(static_cast<int>(i)), &fields[i].type));
    }
    return result;
  }

  absl::StatusOr<json> ReadList(const v1::ValueList& list,
                                const TypeName* type) {
    json result = json::array();
    for (int i = 0; i < list.values_size(); ++i) {
      const TypeName* of = nullptr;
      if (type != nullptr && type->name == "list") of = Parameter(*type, 0);
      if (type != nullptr && type->name == "tuple") {
        of = Parameter(*type, static_cast<size_t>(i));
      }
      ASSIGN_OR_RETURN(json item, Read(list.values(i), of));
      result.push_back(std::move(item));
    }
    return result;
  }

  absl::StatusOr<json> ReadMap(const v1::ValueMap& map, const TypeName* type) {
    if (type != nullptr && type->name != "map") type = nullptr;
    const TypeName* key_type = type == nullptr ? nullptr : Parameter(*type, 0);
    const TypeName* item_type = type == nullptr ? nullptr : Parameter(*type, 1);
    json pairs = json::array();
    bool by_name = true;
    for (const v1::ValueEntry& entry : map.entries()) {
      ASSIGN_OR_RETURN(json key, Read(entry.key(), key_type));
      ASSIGN_OR_RETURN(json item, Read(entry.value(), item_type));
      by_name = by_name && key.is_string();
      pairs.push_back(json::array({std::move(key), std::move(item)}));
    }
    if (!by_name) return pairs;
    json result = json::object();
    for (json& pair : pairs) {
      result[pair[0].get<std::string>()] = std::move(pair[1]);
    }
    return result;
  }

  static const TypeName* Parameter(const TypeName& type, size_t index) {
    return index < type.parameters.size() ? &type.parameters[index] : nullptr;
  }

  const Definitions& definitions_;
  const v1::CallReply& reply_;
};

}  // namespace

absl::Status AddArgument(const json& value, const Signature& signature,
                         v1::CallRequest& request) {
  v1::ValueList& arguments = *request.mutable_arguments();
  const auto index = static_cast<size_t>(arguments.values_size());
  return Writer(signature.definitions, request)
      .Write(value, signature.parameters[index],
             absl::StrCat("argument ", index + 1), *arguments.add_values());
}

absl::StatusOr<json> ResultOf(const v1::CallReply& reply,
                              const Signature& signature) {
  if (reply.results().values().empty()) return json();
  if (reply.results().values_size() > 1) {
    return absl::InternalError("the reply contains more than one result");
  }
  return Reader(signature.definitions, reply)
      .Read(reply.results().values(0), &signature.result);
}

}  // namespace hawser::cli
