// Arguments and results of remote functions as JSON.
//
//   bool, string          true, "text"
//   integers, floats      1, 2.5; "nan", "inf", "-inf"
//   bytes                 {"base64": "..."}
//   list<T>, tuple<...>   [...]
//   optional<T>           null, or the value
//   map<string, T>        {"key": value}; other maps: [[key, value], ...]
//   Tensor                {"dtype": "f32", "shape": [2, 1], "data": [1, 2]};
//                         null if undefined. Also, for f32, [[1], [2]] or 1.
//   protobuf messages     {"message": "full.Name", "base64": "..."}
//
//   structs               {"low": 1, "high": 2}, with all fields
//
// Another type with WireTraits of a user is written as the value that it
// travels as, with the type of that value: {"type": "tuple<double, double>",
// "value": [1, 2]}. As a result it is that value alone, [1.0, 2.0].

#ifndef HAWSER_CLI_JSON_VALUE_H_
#define HAWSER_CLI_JSON_VALUE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/signature.h"
#include "nlohmann/json.hpp"
#include "proto/rpc.pb.h"

namespace hawser::cli {

// Adds `json` to the arguments of `request`, as the next parameter of
// `signature`, which must exist. kInvalidArgument names the faulty place in
// `json`: "argument 1.low must be double".
absl::Status AddArgument(const nlohmann::json& json, const Signature& signature,
                         v1::CallRequest& request);

// The result of a call of a function with `signature`; null if it is void.
// kInternal if the reply, which is not trusted, is inconsistent.
absl::StatusOr<nlohmann::json> ResultOf(const v1::CallReply& reply,
                                        const Signature& signature);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_JSON_VALUE_H_
