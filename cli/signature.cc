#include "cli/signature.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "rpc/wire/structs/type_definitions.h"

namespace hawser::cli {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxBytes = size_t{64} << 10;
// Of a signature in an error.
constexpr size_t kMaxShownBytes = 200;
// Begins the signatures of functions that write a stream.
constexpr std::string_view kStream = "stream ";

std::string Shown(std::string_view text) {
  return text.size() <= kMaxShownBytes
             ? std::string(text)
             : std::string(text.substr(0, kMaxShownBytes)) + "...";
}

// Parser that consumes a text from its front.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool AtEnd() const { return rest_.empty(); }

  // Consumes types up to and including `end`.
  absl::StatusOr<std::vector<TypeName>> TakeTypes(std::string_view end,
                                                  int depth) {
    std::vector<TypeName> types;
    if (Take(end)) return types;
    do {
      ASSIGN_OR_RETURN(TypeName type, TakeType(depth));
      types.push_back(std::move(type));
    } while (Take(", "));
    if (!Take(end))
      return absl::InvalidArgumentError("a bracket is not closed");
    return types;
  }

  absl::StatusOr<TypeName> TakeType(int depth) {
    if (depth > kMaxDepth) {
      return absl::InvalidArgumentError("types are nested too deeply");
    }
    const size_t length =
        std::min(rest_.find_first_of("<>(),{};"), rest_.size());
    TypeName type{.name = std::string(rest_.substr(0, length))};
    rest_.remove_prefix(length);
    if (type.name.empty()) {
      return absl::InvalidArgumentError("a type's name is missing");
    }
    if (Take("<")) {
      ASSIGN_OR_RETURN(type.parameters, TakeTypes(">", depth + 1));
    }
    return type;
  }

  // Consumes "Interval{low: double, high: double}".
  absl::Status TakeDefinition(Definitions& definitions) {
    const size_t length = std::min(rest_.find('{'), rest_.size());
    const auto [definition, added] =
        definitions.try_emplace(std::string(rest_.substr(0, length)));
    if (!added || definition->first.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a definition of '", Shown(definition->first), "' is not expected"));
    }
    rest_.remove_prefix(length);
    if (!Take("{")) return absl::InvalidArgumentError("fields are missing");
    if (Take("}")) return absl::OkStatus();
    do {
      ASSIGN_OR_RETURN(FieldType field, TakeField());
      definition->second.push_back(std::move(field));
    } while (Take(", "));
    if (!Take("}")) {
      return absl::InvalidArgumentError("a bracket is not closed");
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<FieldType> TakeField() {
    const size_t length = std::min(rest_.find(':'), rest_.size());
    FieldType field{.name = std::string(rest_.substr(0, length)), .type = {}};
    rest_.remove_prefix(length);
    if (field.name.empty() || !Take(": ")) {
      return absl::InvalidArgumentError("a field's name is missing");
    }
    ASSIGN_OR_RETURN(field.type, TakeType(1));
    return field;
  }

  std::string_view rest_;
};

absl::StatusOr<Signature> Parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has more than ", kMaxBytes, " bytes"));
  }
  Reader reader(text);
  Signature signature;
  signature.is_stream = reader.Take(kStream);
  ASSIGN_OR_RETURN(signature.result, reader.TakeType(1));
  if (!reader.Take("(")) {
    return absl::InvalidArgumentError("the parameters are missing");
  }
  ASSIGN_OR_RETURN(signature.parameters, reader.TakeTypes(")", 1));
  if (reader.Take(rpc::TypeDefinitions::kBegin)) {
    do {
      RETURN_IF_ERROR(reader.TakeDefinition(signature.definitions));
    } while (reader.Take(rpc::TypeDefinitions::kSeparator));
  }
  if (!reader.AtEnd()) {
    return absl::InvalidArgumentError("text follows the end");
  }
  return signature;
}

}  // namespace

absl::StatusOr<Signature> ParseSignature(std::string_view text) {
  absl::StatusOr<Signature> signature = Parse(text);
  if (signature.ok()) return signature;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", Shown(text),
      "' is not a function's signature: ", signature.status().message()));
}

std::string_view WithoutDefinitions(std::string_view text) {
  return text.substr(0, text.find(rpc::TypeDefinitions::kBegin));
}

absl::StatusOr<TypeName> ParseType(std::string_view text) {
  Reader reader(text);
  absl::StatusOr<TypeName> type = reader.TakeType(1);
  if (type.ok() && reader.AtEnd()) return type;
  return absl::InvalidArgumentError(
      absl::StrCat("'", Shown(text), "' is not a type: ",
                   type.ok() ? "text follows it" : type.status().message()));
}

std::string ToString(const TypeName& type) {
  if (type.parameters.empty()) return type.name;
  std::string text = type.name + "<";
  for (size_t i = 0; i < type.parameters.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "", ToString(type.parameters[i]));
  }
  return text + ">";
}

std::string ToString(const std::vector<FieldType>& fields) {
  return absl::StrJoin(
      fields, ", ", [](std::string* out, const FieldType& field) {
        absl::StrAppend(out, field.name, ": ", ToString(field.type));
      });
}

}  // namespace hawser::cli
