#ifndef HAWSER_NN_GOLDEN_CASES_H_
#define HAWSER_NN_GOLDEN_CASES_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "nn/module.h"
#include "tensor/tensor.h"

// Figures made by PyTorch 1.13.1 with nn/testdata/make_nn_golden.py.
namespace hawser::nn {

// nn/testdata/nn_golden.json; fails the test if it cannot be read.
nlohmann::ordered_json ReadGolden();

// A tensor of the file, in its dtype.
Tensor GoldenTensor(const nlohmann::ordered_json& encoded);

// The tensors of an object of the file, in its order.
NamedTensors GoldenTensors(const nlohmann::ordered_json& object);

// Fails the test unless `actual` has the shape, and to `tolerance` (absolute
// and relative) the elements, of `expected`.
void ExpectTensorNear(const std::string& what, const Tensor& actual,
                      const Tensor& expected, double tolerance = 1e-11);

}  // namespace hawser::nn

#endif  // HAWSER_NN_GOLDEN_CASES_H_
