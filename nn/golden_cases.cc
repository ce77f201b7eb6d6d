#include "nn/golden_cases.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "nn/module.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::nn {

using nlohmann::ordered_json;

ordered_json ReadGolden() {
  std::ifstream file("nn/testdata/nn_golden.json");
  EXPECT_TRUE(file.is_open());
  return ordered_json::parse(file);
}

Tensor GoldenTensor(const ordered_json& encoded) {
  const std::vector<int64_t> dims = encoded["shape"];
  const tensor::Shape shape(dims);
  const std::string dtype = encoded["dtype"];
  if (dtype == "f64") {
    return Tensor::FromVector(encoded["data"].get<std::vector<double>>(),
                              shape);
  }
  const Tensor whole =
      Tensor::FromVector(encoded["data"].get<std::vector<int64_t>>(), shape);
  return dtype == "bool" ? whole.To(tensor::DType::kBool).value() : whole;
}

NamedTensors GoldenTensors(const ordered_json& object) {
  NamedTensors tensors;
  for (const auto& [name, encoded] : object.items()) {
    tensors.emplace_back(name, GoldenTensor(encoded));
  }
  return tensors;
}

void ExpectTensorNear(const std::string& what, const Tensor& actual,
                      const Tensor& expected, double tolerance) {
  SCOPED_TRACE(what);
  ASSERT_TRUE(actual.defined());
  ASSERT_EQ(actual.shape(), expected.shape());
  const std::vector<double> a = actual.ToVector<double>();
  const std::vector<double> e = expected.ToVector<double>();
  for (size_t i = 0; i < e.size(); ++i) {
    ASSERT_NEAR(a[i], e[i], tolerance * (1 + std::abs(e[i])))
        << "element " << i;
  }
}

}  // namespace hawser::nn
