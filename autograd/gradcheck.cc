#include "autograd/gradcheck.h"

#include <cmath>
#include <cstddef>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/variable.h"

namespace hawser::autograd {
namespace {

constexpr tensor::TensorOptions kF64 = {.dtype = tensor::DType::kF64};

std::vector<double> Weights(int64_t count) {
  std::vector<double> weights(static_cast<size_t>(count));
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = std::cos(1.7 * static_cast<double>(i) + 0.3) + 0.2;
  }
  return weights;
}

absl::StatusOr<double> WeightedOutput(const TensorFunction& function,
                                      std::span<const Tensor> inputs) {
  NoGradGuard no_grad;
  ASSIGN_OR_RETURN(Tensor out, function(inputs));
  const std::vector<double> values = out.ToVector<double>();
  const std::vector<double> weights = Weights(out.num_elements());
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

absl::StatusOr<double> Difference(const TensorFunction& function,
                                  std::vector<Tensor> inputs, size_t input,
                                  size_t element, double step) {
  const Tensor original = inputs[input];
  double side[2];
  for (int i = 0; i < 2; ++i) {
    std::vector<double> values = original.ToVector<double>();
    values[element] += i == 0 ? step : -step;
    inputs[input] = Tensor::FromVector(values, original.shape());
    ASSIGN_OR_RETURN(side[i], WeightedOutput(function, inputs));
  }
  return (side[0] - side[1]) / (2 * step);
}

}  // namespace

Tensor Variable(const std::vector<double>& values, const tensor::Shape& shape) {
  Tensor variable = Tensor::FromVector(values, shape);
  HAWSER_CHECK(SetRequiresGrad(variable).ok());
  return variable;
}

Tensor RandomVariable(const tensor::Shape& shape, RandomRange range) {
  std::mt19937_64 engine(range.seed);
  std::vector<double> values(static_cast<size_t>(shape.num_elements()));
  for (double& value : values) {
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    value = range.low + unit * (range.high - range.low);
  }
  return Variable(values, shape);
}

absl::Status CheckGradients(const TensorFunction& function,
                            std::vector<Tensor> inputs,
                            GradcheckOptions options) {
  ASSIGN_OR_RETURN(Tensor out, function(inputs));
  ASSIGN_OR_RETURN(auto gradients,
                   GradientsOf(out, Weights(out.num_elements()), inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (gradients[i].size() != static_cast<size_t>(inputs[i].num_elements())) {
      return absl::DataLossError(absl::StrCat("the gradient of input ", i,
                                              " has ", gradients[i].size(),
                                              " elements"));
    }
    for (size_t j = 0; j < gradients[i].size(); ++j) {
      ASSIGN_OR_RETURN(const double expected,
                       Difference(function, inputs, i, j, options.step));
      const double tolerance = options.absolute_tolerance +
                               options.relative_tolerance * std::abs(expected);
      if (!(std::abs(gradients[i][j] - expected) <= tolerance)) {
        return absl::DataLossError(absl::StrCat(
            "the gradient of element ", j, " of input ", i, " is ",
            gradients[i][j], "; finite differences give ", expected));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<double>>> GradientsOf(
    const Tensor& out, const std::vector<double>& dout,
    std::vector<Tensor> inputs) {
  const Tensor seed = Tensor::FromVector(dout, out.shape());
  GradOptions options;
  options.output_gradients = {seed};
  options.retain_graph = true;
  options.allow_unused = true;
  ASSIGN_OR_RETURN(std::vector<Tensor> gradients,
                   Grad({&out, 1}, inputs, std::move(options)));
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      gradients[i] = Tensor::Zeros(inputs[i].shape(), kF64);
    }
    values.push_back(gradients[i].ToVector<double>());
  }
  return values;
}

}  // namespace hawser::autograd
