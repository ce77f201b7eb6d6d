// Tests that train a model locally and compare all results with PyTorch's.

#include "tests/training_golden.h"

#include <string>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/variable.h"
#include "gtest/gtest.h"
#include "nn/loss.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "tensor/tensor.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

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
  const auto model = MakeGoldenModel();
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
