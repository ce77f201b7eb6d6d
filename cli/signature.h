// The types of a function's parameters, from its signature.

#ifndef HAWSER_CLI_SIGNATURE_H_
#define HAWSER_CLI_SIGNATURE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::cli {

// A type as signatures write it: "int64", or "map<string, list<Tensor>>".
struct TypeName {
  std::string name;
  // What stands between "<" and ">".
  std::vector<TypeName> parameters = {};

  friend bool operator==(const TypeName&, const TypeName&) = default;
};

struct Signature {
  TypeName result;
  std::vector<TypeName> parameters;
};

// Reads "Tensor(Tensor, int64)". kInvalidArgument if it is malformed, or nested
// more than 64 deep: it comes from a worker, which is not trusted.
absl::StatusOr<Signature> ParseSignature(std::string_view text);

// As it is written.
std::string ToString(const TypeName& type);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_SIGNATURE_H_
