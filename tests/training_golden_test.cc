// Tests that train a model locally and compare all results with PyTorch's.

#include "tests/training_golden.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/variable.h"
#include "gtest/gtest.h"
#include "nn/activation.h"
#include "nn/linear.h"
#include "nn/loss.h"
#include "nn/sequential.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

absl::StatusOr<std::unique_ptr<nn::Linear>> MakeLinear(
    int64_t in, int64_t out, tensor::Activation activation) {
  tensor::Generator generator(0);
  return nn::Linear::Create({.in_features = in,
                             .out_features = out,
                             .activation = activation,
                             .dtype = tensor::DType::kF64},
                            generator);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel() {
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

void ExpectNear(const std::string& what, const Tensor& actual,
                const Tensor& expected) {
  SCOPED_TRACE(what);
  ASSERT_EQ(actual.shape(), expected.shape());
  const std::vector<double> a = actual.ToVector<double>();
  const std::vector<double> e = expected.ToVector<double>();
  for (size_t i = 0; i < e.size(); ++i) {
    ASSERT_NEAR(a[i], e[i], 1e-10) << "element " << i;
  }
}

TEST(TrainingGoldenTest, LocalTrainingReproducesPyTorch) {
  const TrainingGolden golden = ReadTrainingGolden();
  ASSERT_EQ(golden.inputs.size(), 6);
  const auto model = MakeModel();
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT((*model)->LoadStateDict(golden.start), IsOk());
  const auto optimizer = optim::Optimizer::Create(
      (*model)->parameters(),
      optim::Sgd({.lr = golden.lr, .momentum = golden.momentum}));
  ASSERT_THAT(optimizer, IsOk());

  for (size_t step = 0; step < golden.inputs.size(); ++step) {
    SCOPED_TRACE(step);
    const auto logits = (*model)->Forward(golden.inputs[step]);
    ASSERT_THAT(logits, IsOk());
    const auto loss = nn::CrossEntropyLoss(*logits, golden.labels[step]);
    ASSERT_THAT(loss, IsOk());
    EXPECT_NEAR(*loss->item<double>(), golden.losses[step], 1e-10);
    (*optimizer)->ZeroGrad();
    ASSERT_THAT(autograd::Backward(*loss), IsOk());
    if (step == 0) {
      const nn::NamedTensors parameters = (*model)->named_parameters();
      ASSERT_EQ(parameters.size(), golden.first_gradients.size());
      for (size_t i = 0; i < parameters.size(); ++i) {
        ASSERT_EQ(parameters[i].first, golden.first_gradients[i].first);
        ExpectNear("gradient of " + parameters[i].first,
                   autograd::Grad(parameters[i].second),
                   golden.first_gradients[i].second);
      }
    }
    ASSERT_THAT((*optimizer)->Step(), IsOk());
  }
  const std::vector<Tensor> parameters = (*model)->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    ExpectNear(golden.end[i].first, parameters[i], golden.end[i].second);
  }
}

}  // namespace
}  // namespace hawser::tests
