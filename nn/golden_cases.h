#ifndef HAWSER_NN_GOLDEN_CASES_H_
#define HAWSER_NN_GOLDEN_CASES_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "nn/module.h"
#include "tensor/tensor.h"

// Results of PyTorch 1.13.1, written by nn/testdata/make_nn_golden.py.
namespace hawser::nn {

// Reads nn/testdata/nn_golden.json; fails the test if that is not possible.
nlohmann::ordered_json ReadGolden();

// Decodes a tensor of the file, with its dtype.
Tensor GoldenTensor(const nlohmann::ordered_json& encoded);

// Decodes the tensors of a JSON object, in the order of the file.
NamedTensors GoldenTensors(const nlohmann::ordered_json& object);

// Fails the test unless `actual` has the shape of `expected`, and its elements
// are within `tolerance` (absolute and relative) of those of `expected`.
void ExpectTensorNear(const std::string& what, const Tensor& actual,
                      const Tensor& expected, double tolerance = 1e-11);

}  // namespace hawser::nn

#endif  // HAWSER_NN_GOLDEN_CASES_H_
