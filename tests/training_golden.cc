#include "tests/training_golden.h"

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "nn/activation.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::tests {
namespace {

using ::nlohmann::ordered_json;

// Converts a vector or a matrix.
Tensor ToTensor(const ordered_json& rows) {
  if (!rows[0].is_array()) {
    return Tensor::FromVector(rows.get<std::vector<double>>(),
                              {static_cast<int64_t>(rows.size())});
  }
  std::vector<double> values;
  for (const ordered_json& row : rows) {
    values.insert(values.end(), row.begin(), row.end());
  }
  return Tensor::FromVector(values, {static_cast<int64_t>(rows.size()),
                                     static_cast<int64_t>(rows[0].size())});
}

TrainingGolden::NamedTensors ToTensors(const ordered_json& object) {
  TrainingGolden::NamedTensors tensors;
  for (const auto& [name, rows] : object.items()) {
    tensors.emplace_back(name, ToTensor(rows));
  }
  return tensors;
}

absl::StatusOr<std::unique_ptr<nn::Linear>> MakeLinear(
    int64_t in, int64_t out, tensor::Activation activation) {
  tensor::Generator generator(0);
  return nn::Linear::Create({.in_features = in,
                             .out_features = out,
                             .activation = activation,
                             .dtype = tensor::DType::kF64},
                            generator);
}

}  // namespace

TrainingGolden ReadTrainingGolden() {
  std::ifstream file("tests/testdata/training_golden.json");
  EXPECT_TRUE(file.is_open());
  const ordered_json json = ordered_json::parse(file);
  TrainingGolden golden;
  golden.lr = json["optimizer"]["lr"];
  golden.momentum = json["optimizer"]["momentum"];
  golden.start = ToTensors(json["start"]);
  for (const ordered_json& batch : json["inputs"]) {
    golden.inputs.push_back(ToTensor(batch));
  }
  for (const ordered_json& batch : json["labels"]) {
    const std::vector<int64_t> labels = batch;
    golden.labels.push_back(
        Tensor::FromVector(labels, {static_cast<int64_t>(labels.size())}));
  }
  golden.losses = json["losses"].get<std::vector<double>>();
  golden.first_gradients = ToTensors(json["first_gradients"]);
  golden.end = ToTensors(json["end"]);
  return golden;
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeGoldenModel() {
  auto model = std::make_unique<nn::Sequential>();
  ASSIGN_OR_RETURN(auto fc1, MakeLinear(20, 16, tensor::Activation::kRelu));
  ASSIGN_OR_RETURN(auto fc2, MakeLinear(16, 16, tensor::Activation::kNone));
  ASSIGN_OR_RETURN(auto fc3, MakeLinear(16, 5, tensor::Activation::kNone));
  model->Append("fc1", std::move(fc1));
  model->Append("fc2", std::move(fc2));
  model->Append("tanh", std::make_unique<nn::Tanh>());
  model->Append("fc3", std::move(fc3));
  return model;
}

}  // namespace hawser::tests
