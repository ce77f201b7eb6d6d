#include "cli/signature.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::cli {
namespace {

constexpr int kMaxDepth = 64;

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
    const size_t length = std::min(rest_.find_first_of("<>(),"), rest_.size());
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

 private:
  std::string_view rest_;
};

absl::StatusOr<Signature> Parse(std::string_view text) {
  Reader reader(text);
  Signature signature;
  ASSIGN_OR_RETURN(signature.result, reader.TakeType(1));
  if (!reader.Take("(")) {
    return absl::InvalidArgumentError("the parameters are missing");
  }
  ASSIGN_OR_RETURN(signature.parameters, reader.TakeTypes(")", 1));
  if (!reader.AtEnd()) {
    return absl::InvalidArgumentError("text follows the parameters");
  }
  return signature;
}

}  // namespace

absl::StatusOr<Signature> ParseSignature(std::string_view text) {
  absl::StatusOr<Signature> signature = Parse(text);
  if (signature.ok()) return signature;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::string_view(text.data(), text.size()),
      "' is not a function's signature: ", signature.status().message()));
}

absl::StatusOr<TypeName> ParseType(std::string_view text) {
  Reader reader(text);
  absl::StatusOr<TypeName> type = reader.TakeType(1);
  if (type.ok() && reader.AtEnd()) return type;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::string_view(text.data(), text.size()), "' is not a type: ",
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

}  // namespace hawser::cli
