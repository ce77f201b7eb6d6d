// The type of a function, from its signature.

#ifndef HAWSER_CLI_SIGNATURE_H_
#define HAWSER_CLI_SIGNATURE_H_

#include <map>
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

// A field of a struct.
struct FieldType {
  std::string name;
  TypeName type;

  friend bool operator==(const FieldType&, const FieldType&) = default;
};

// The fields of structs, in order, by the names of their types.
using Definitions = std::map<std::string, std::vector<FieldType>>;

struct Signature {
  // Whether the function writes a stream of results.
  bool is_stream = false;
  TypeName result = {};
  std::vector<TypeName> parameters = {};
  Definitions definitions = {};
};

// Parses a signature such as "Tensor(Tensor, int64)", "stream int64()" or
// "Interval() where Interval{low: double, high: double}". It comes from a
// worker, which is not trusted: kInvalidArgument if it is malformed, defines a
// type twice, has more than 64 nested levels or more than 64 KiB.
absl::StatusOr<Signature> ParseSignature(std::string_view text);

// The text of a signature without its definitions.
std::string_view WithoutDefinitions(std::string_view text);

// Parses one type, such as "map<string, int64>", with the same errors.
absl::StatusOr<TypeName> ParseType(std::string_view text);

// The inverse of parsing.
std::string ToString(const TypeName& type);
// "low: double, high: double".
std::string ToString(const std::vector<FieldType>& fields);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_SIGNATURE_H_
