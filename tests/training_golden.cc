#include "tests/training_golden.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
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

}  // namespace hawser::tests
