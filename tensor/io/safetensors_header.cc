#include "tensor/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::tensor::internal {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

std::string_view SafetensorsName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kU8:
      return "U8";
    case DType::kBool:
      return "BOOL";
  }
  return "";
}

std::optional<DType> DTypeFromSafetensors(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (SafetensorsName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

// SAX handler for the header. Accepts only the events that the format allows
// next, so that nesting is bounded by the format, not by the input.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader& header() { return header_; }

  // The reason why an event was rejected.
  absl::Status TakeError() { return std::move(error_); }

  bool null() override { return Refuse("null"); }
  bool boolean(bool) override { return Refuse("true or false"); }
  bool number_float(double, const std::string&) override {
    return Refuse("a number that is not a 64-bit integer");
  }
  bool number_integer(int64_t value) override {
    return Refuse(absl::StrCat("the negative number ", value));
  }
  bool binary(nlohmann::json::binary_t&) override { return Refuse("binary"); }

  bool number_unsigned(uint64_t value) override {
    if (place_ == Place::kShape) return AddDim(value);
    if (place_ == Place::kOffsets) return AddOffset(value);
    return Refuse("a number");
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (place_ != Place::kTensor || field_ != Field::kDType) {
      return Refuse("a string");
    }
    const std::optional<DType> dtype = DTypeFromSafetensors(value);
    if (!dtype) {
      return Fail(absl::StrCat("tensor ", QuotedName(entry().name), ": dtype ",
                               QuotedName(value), " is not supported"));
    }
    entry().dtype = *dtype;
    field_ = Field::kNone;
    return true;
  }

  bool key(std::string& value) override {
    switch (place_) {
      case Place::kTop:
        if (!names_.insert(value).second) {
          return Fail(
              absl::StrCat("the name ", QuotedName(value), " is duplicate"));
        }
        key_ = std::move(value);
        return true;
      case Place::kMetadata:
        if (header_.metadata.contains(value)) {
          return Fail(absl::StrCat("the metadata key ", QuotedName(value),
                                   " is duplicate"));
        }
        key_ = std::move(value);
        return true;
      default:
        return TensorKey(value);
    }
  }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
      return true;
    }
    if (place_ != Place::kTop) return Refuse("an object");
    if (key_ == kMetadataName) {
      place_ = Place::kMetadata;
      return true;
    }
    header_.entries.emplace_back().name = std::move(key_);
    place_ = Place::kTensor;
    field_ = Field::kNone;
    fields_seen_ = 0;
    num_offsets_ = 0;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTop) {
      place_ = Place::kEnd;
      return true;
    }
    if (place_ == Place::kTensor && fields_seen_ != kAllFields) {
      return Fail(absl::StrCat("tensor ", QuotedName(entry().name),
                               " lacks dtype, shape or data_offsets"));
    }
    place_ = Place::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::kTensor && field_ == Field::kShape) {
      place_ = Place::kShape;
      return true;
    }
    if (place_ == Place::kTensor && field_ == Field::kOffsets) {
      place_ = Place::kOffsets;
      return true;
    }
    return Refuse("an array");
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && num_offsets_ != 2) return WrongOffsets();
    place_ = Place::kTensor;
    field_ = Field::kNone;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position, " of the header"));
  }

 private:
  // Context of the next event.
  enum class Place {
    kStart,
    kTop,
    kMetadata,
    kTensor,
    kShape,
    kOffsets,
    kEnd,
  };
  // Field of a tensor whose value comes next.
  enum class Field { kNone = 0, kDType = 1, kShape = 2, kOffsets = 4 };
  static constexpr int kAllFields = 7;

  SafetensorsEntry& entry() { return header_.entries.back(); }

  bool Fail(absl::string_view what) {
    error_ = Invalid(what);
    return false;
  }

  bool Refuse(absl::string_view what) {
    switch (place_) {
      case Place::kStart:
      case Place::kEnd:
        return Fail(absl::StrCat(what, " in place of the header's object"));
      case Place::kTop:
        return Fail(absl::StrCat(what, " as the value of ", QuotedName(key_),
                                 ", which must be an object"));
      case Place::kMetadata:
        return Fail(absl::StrCat(what, " as the metadata of ", QuotedName(key_),
                                 ", which must be a string"));
      default:
        return Fail(absl::StrCat("tensor ", QuotedName(entry().name), ": ",
                                 what, " in an unexpected place"));
    }
  }

  bool TensorKey(const std::string& key) {
    field_ = key == "dtype"          ? Field::kDType
             : key == "shape"        ? Field::kShape
             : key == "data_offsets" ? Field::kOffsets
                                     : Field::kNone;
    if (field_ == Field::kNone) {
      return Fail(absl::StrCat("tensor ", QuotedName(entry().name),
                               ": the key ", QuotedName(key), " is unknown"));
    }
    const int bit = static_cast<int>(field_);
    if ((fields_seen_ & bit) != 0) {
      return Fail(absl::StrCat("tensor ", QuotedName(entry().name), ": ",
                               QuotedName(key), " is duplicate"));
    }
    fields_seen_ |= bit;
    return true;
  }

  bool AddDim(uint64_t value) {
    if (entry().shape.rank() == kMaxRank) {
      return Fail(absl::StrCat("tensor ", QuotedName(entry().name),
                               " has more than ", kMaxRank, " dimensions"));
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail(absl::StrCat("tensor ", QuotedName(entry().name),
                               ": the size ", value, " exceeds an int64"));
    }
    entry().shape.Append(static_cast<int64_t>(value));
    return true;
  }

  bool AddOffset(uint64_t value) {
    if (num_offsets_ == 2) return WrongOffsets();
    (num_offsets_++ == 0 ? entry().begin : entry().end) = value;
    return true;
  }

  bool WrongOffsets() {
    return Fail(absl::StrCat("tensor ", QuotedName(entry().name),
                             ": data_offsets are not two numbers"));
  }

  SafetensorsHeader header_;
  std::set<std::string> names_;
  absl::Status error_;
  Place place_ = Place::kStart;
  std::string key_;
  Field field_ = Field::kNone;
  int fields_seen_ = 0;
  int num_offsets_ = 0;
};

// Checks that the offsets match the size of the elements and start at `begin`.
absl::Status CheckEntry(const SafetensorsEntry& entry, uint64_t begin) {
  const absl::StatusOr<int64_t> num_elements = entry.shape.CheckedNumElements();
  int64_t bytes;
  if (!num_elements.ok() ||
      __builtin_mul_overflow(*num_elements, ItemBytes(entry.dtype), &bytes)) {
    return Invalid(absl::StrCat("tensor ", QuotedName(entry.name), ": shape ",
                                entry.shape.ToString(),
                                " has more bytes than an int64 counts"));
  }
  if (entry.end < entry.begin ||
      entry.end - entry.begin != static_cast<uint64_t>(bytes)) {
    return Invalid(absl::StrCat("tensor ", QuotedName(entry.name), ": ",
                                View(SafetensorsName(entry.dtype)),
                                entry.shape.ToString(), " takes ", bytes,
                                " bytes, but data_offsets are [", entry.begin,
                                ", ", entry.end, "]"));
  }
  if (entry.begin != begin) {
    return Invalid(absl::StrCat(
        "tensor ", QuotedName(entry.name), " begins at data byte ", entry.begin,
        entry.begin < begin ? ", within the tensor before it" : ", after a gap",
        " (byte ", begin, " is next)"));
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(std::vector<SafetensorsEntry>& entries,
                         uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) <
                     std::tie(b.begin, b.end, b.name);
            });
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    RETURN_IF_ERROR(CheckEntry(entry, end));
    end = entry.end;
  }
  if (end != data_bytes) {
    return Invalid(absl::StrCat("the tensors take ", end,
                                " bytes of data, but the file has ",
                                data_bytes));
  }
  return absl::OkStatus();
}

// Formats `text` as a JSON string; nullopt if it is not UTF-8.
std::optional<std::string> JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&json, "\\", absl::string_view(&c, 1));
    } else if (byte < 0x20) {
      absl::StrAppend(&json, "\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      json.push_back(c);
    }
  }
  json.push_back('"');
  if (!nlohmann::json::accept(json)) return std::nullopt;
  return json;
}

absl::StatusOr<std::string> JsonStringOrError(std::string_view text) {
  if (auto json = JsonString(text)) return *std::move(json);
  return Invalid(absl::StrCat(QuotedName(text), " is not UTF-8"));
}

}  // namespace

std::string QuotedName(std::string_view name) {
  constexpr size_t kMostShown = 100;
  const absl::string_view shown = View(name.substr(0, kMostShown));
  return absl::StrCat("\"", absl::CHexEscape(shown),
                      name.size() > kMostShown ? "...\"" : "\"");
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                         uint64_t data_bytes) {
  if (json.empty() || json[0] != '{') {
    return Invalid("the header does not begin with {");
  }
  // The parser would treat it as the end and ignore the rest.
  if (json.find('\0') != std::string_view::npos) {
    return Invalid("the header has a NUL byte");
  }
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    return reader.TakeError();
  }
  SafetensorsHeader header = std::move(reader.header());
  RETURN_IF_ERROR(CheckLayout(header.entries, data_bytes));
  return header;
}

absl::StatusOr<std::string> FormatSafetensorsHeader(
    const SafetensorsHeader& header) {
  std::string json = "{";
  absl::string_view separator = "";
  if (!header.metadata.empty()) {
    absl::StrAppend(&json, "\"", View(kMetadataName), "\":{");
    for (const auto& [key, value] : header.metadata) {
      ASSIGN_OR_RETURN(const std::string json_key, JsonStringOrError(key));
      ASSIGN_OR_RETURN(const std::string json_value, JsonStringOrError(value));
      absl::StrAppend(&json, separator, json_key, ":", json_value);
      separator = ",";
    }
    json.push_back('}');
    separator = ",";
  }
  for (const SafetensorsEntry& entry : header.entries) {
    ASSIGN_OR_RETURN(const std::string name, JsonStringOrError(entry.name));
    absl::StrAppend(&json, separator, name, ":{\"dtype\":\"",
                    View(SafetensorsName(entry.dtype)),
                    "\",\"shape\":", entry.shape.ToString(),
                    ",\"data_offsets\":[", entry.begin, ",", entry.end, "]}");
    separator = ",";
  }
  json.push_back('}');
  constexpr size_t kAlignment = 64;
  while ((json.size() + sizeof(uint64_t)) % kAlignment != 0) {
    json.push_back(' ');
  }
  return json;
}

}  // namespace hawser::tensor::internal
