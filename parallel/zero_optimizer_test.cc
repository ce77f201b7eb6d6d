#include "parallel/zero_optimizer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "autograd/variable.h"
#include "collectives/loopback/backend.h"
#include "collectives/process_group.h"
#include "collectives/testing/run_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/adam.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "tensor/tensor.h"

namespace hawser::parallel {
namespace {

using collectives::ProcessGroup;
using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;

TEST(AssignOwnersTest, TheLargestComeFirst) {
  EXPECT_THAT(AssignOwners({5, 1, 4, 4, 1}, 2), ElementsAre(0, 0, 1, 1, 0));
  EXPECT_THAT(AssignOwners({3, 3, 3}, 2), ElementsAre(0, 1, 0));
  EXPECT_THAT(AssignOwners({1}, 3), ElementsAre(0));
}

std::vector<Tensor> MakeParameters() {
  std::vector<Tensor> parameters;
  for (const int64_t size : {40, 3, 17, 17, 1}) {
    parameters.push_back(Tensor::Full({size}, 1));
    EXPECT_THAT(autograd::SetRequiresGrad(parameters.back()), IsOk());
  }
  return parameters;
}

// The gradients of a step, without one for a parameter in step 1.
void SetGradients(const std::vector<Tensor>& parameters, int step) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor gradient;
    if (step != 1 || i != 2) {
      gradient = Tensor::Full(parameters[i].shape(),
                              0.1 * static_cast<double>(i + 1) * (step + 1));
    }
    ASSERT_THAT(autograd::SetGrad(parameters[i], gradient), IsOk());
  }
}

TEST(ZeroOptimizerTest, StepsAreThoseOfOneOptimizer) {
  const optim::RuleSpec rule = optim::Adam({.lr = 0.1});
  const std::vector<Tensor> expected = MakeParameters();
  const auto optimizer = optim::Optimizer::Create(expected, rule);
  for (int step = 0; step < 4; ++step) {
    SetGradients(expected, step);
    ASSERT_THAT((*optimizer)->Step(), IsOk());
    ASSERT_THAT((*optimizer)->SetOption("lr", 0.05), IsOk());
  }
  for (const int size : {1, 2, 3, 7}) {
    collectives::RunRanks(
        collectives::MakeLoopbackBackends, size, [&](ProcessGroup& group) {
          const std::vector<Tensor> parameters = MakeParameters();
          const auto zero = ZeroOptimizer::Create(parameters, rule, group);
          ASSERT_THAT(zero, IsOk());
          for (int step = 0; step < 4; ++step) {
            SetGradients(parameters, step);
            ASSERT_THAT((*zero)->Step(), IsOk());
            ASSERT_THAT((*zero)->SetOption("lr", 0.05), IsOk());
          }
          for (size_t i = 0; i < parameters.size(); ++i) {
            EXPECT_EQ(parameters[i].ToVector<float>(),
                      expected[i].ToVector<float>());
          }
          (*zero)->ZeroGrad();
          EXPECT_FALSE(autograd::Grad(parameters[0]).defined());
          // A rank beyond the parameters has none.
          EXPECT_EQ((*zero)->local() == nullptr, group.rank() >= 5);
        });
  }
}

TEST(ZeroOptimizerTest, StateIsDividedAmongTheRanks) {
  collectives::RunRanks(
      collectives::MakeLoopbackBackends, 2, [](ProcessGroup& group) {
        const auto zero = ZeroOptimizer::Create(MakeParameters(),
                                                optim::Sgd({.lr = 1}), group);
        ASSERT_THAT(zero, IsOk());
        EXPECT_THAT((*zero)->owners(), ElementsAre(0, 1, 1, 1, 1));
        EXPECT_EQ((*zero)->local()->parameters().size(),
                  group.rank() == 0 ? 1u : 4u);
      });
}

TEST(ZeroOptimizerTest, WrongParametersAreRefusedOnAllRanks) {
  collectives::RunRanks(
      collectives::MakeLoopbackBackends, 2, [](ProcessGroup& group) {
        EXPECT_THAT(ZeroOptimizer::Create({Tensor::Zeros({3}), Tensor()},
                                          optim::Sgd({.lr = 1}), group),
                    StatusIs(absl::StatusCode::kInvalidArgument));
      });
}

}  // namespace
}  // namespace hawser::parallel
