// The types of a function's parameters, from its signature.

#ifndef HAWSER_CLI_SIGNATURE_H_
#define HAWSER_CLI_SIGNATURE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::cli {

// A type in a signature, such as "int64" or "map<string, list<Tensor>>".
struct TypeName {
  std::string name;
  // The types between "<" and ">".
  std::vector<TypeName> parameters = {};

  friend bool operator==(const TypeName&, const TypeName&) = default;
};

struct Signature {
  TypeName result;
  std::vector<TypeName> parameters;
};

// Parses a signature such as "Tensor(Tensor, int64)". It comes from a worker,
// which is not trusted: kInvalidArgument if it is malformed or has more than 64
// nested levels.
absl::StatusOr<Signature> ParseSignature(std::string_view text);

// Parses one type, such as "map<string, int64>", with the same errors.
absl::StatusOr<TypeName> ParseType(std::string_view text);

// The inverse of parsing.
std::string ToString(const TypeName& type);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_SIGNATURE_H_
