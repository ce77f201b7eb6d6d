// Tensors as JSON; see json_value.h.

#ifndef HAWSER_CLI_JSON_TENSOR_H_
#define HAWSER_CLI_JSON_TENSOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/tensor.pb.h"

namespace hawser::cli {

// A tensor as a message contains it.
struct WireTensor {
  v1::TensorHeader header;
  std::string data;
};

// kInvalidArgument names the faulty part.
absl::StatusOr<WireTensor> TensorFromJson(const nlohmann::json& json);

// kInternal if header and data contradict each other.
absl::StatusOr<nlohmann::json> TensorToJson(const v1::TensorHeader& header,
                                            const std::string& data);

// Convert between a number and a JSON number, or "nan", "inf" or "-inf".
// NumberFromJson returns false if `json` is neither.
bool NumberFromJson(const nlohmann::json& json, double& number);
nlohmann::json NumberToJson(double number);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_JSON_TENSOR_H_
