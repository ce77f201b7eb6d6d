#include "parallel/zero_optimizer.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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
#include "optim/optimizer_file.h"
#include "optim/sgd.h"
#include "tensor/io/safetensors.h"
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

// Steps [begin, end), with another learning rate after step 1.
template <class Optimizer>
void RunSteps(Optimizer& optimizer, const std::vector<Tensor>& parameters,
              int begin, int end) {
  for (int step = begin; step < end; ++step) {
    SetGradients(parameters, step);
    ASSERT_THAT(optimizer.Step(), IsOk());
    if (step != 1) continue;
    ASSERT_THAT(optimizer.SetOption("lr", 0.05), IsOk());
  }
}

void Copy(const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
  for (size_t i = 0; i < to.size(); ++i) {
    Tensor target = to[i].Detach();
    ASSERT_THAT(target.CopyFrom(from[i].Detach()), IsOk());
  }
}

// Trains some steps on some ranks, saves, loads on others, and goes on. The
// result is that of one optimizer which does not stop.
TEST(ZeroOptimizerTest, StateMovesToAnotherNumberOfRanks) {
  const std::string path = testing::TempDir() + "/zero.safetensors";
  for (const optim::RuleSpec& rule :
       {optim::Adam({.lr = 0.1}), optim::Sgd({.lr = 0.1, .momentum = 0.9})}) {
    const std::vector<Tensor> expected = MakeParameters();
    const auto optimizer = optim::Optimizer::Create(expected, rule);
    RunSteps(**optimizer, expected, 0, 6);
    for (const auto& [before, after, to] :
         {std::array{1, 3, 0}, {2, 1, 1}, {3, 2, 0}, {2, 7, 0}, {7, 2, 6}}) {
      SCOPED_TRACE(testing::Message() << before << " to " << after << " ranks");
      const std::vector<Tensor> saved = MakeParameters();
      const int root = to;
      collectives::RunRanks(
          collectives::MakeLoopbackBackends, before, [&](ProcessGroup& group) {
            const std::vector<Tensor> parameters = MakeParameters();
            const auto zero = ZeroOptimizer::Create(parameters, rule, group);
            RunSteps(**zero, parameters, 0, 3);
            const auto state = (*zero)->ConsolidateState(root);
            ASSERT_THAT(state, IsOk());
            if (group.rank() != root) {
              EXPECT_TRUE(state->tensors.empty());
              return;
            }
            Copy(parameters, saved);
            ASSERT_THAT(tensor::SaveSafetensors(path, *state), IsOk());
          });
      collectives::RunRanks(
          collectives::MakeLoopbackBackends, after, [&](ProcessGroup& group) {
            const std::vector<Tensor> parameters = MakeParameters();
            Copy(saved, parameters);
            const auto zero = ZeroOptimizer::Create(parameters, rule, group);
            const auto state = tensor::LoadSafetensors(path);
            ASSERT_THAT(state, IsOk());
            ASSERT_THAT((*zero)->SetState(*state), IsOk());
            const auto again = (*zero)->ConsolidateState();
            ASSERT_THAT(again, IsOk());
            if (group.rank() == 0) {
              EXPECT_EQ(again->metadata, state->metadata);
              EXPECT_EQ(again->tensors.size(), state->tensors.size());
            }
            RunSteps(**zero, parameters, 3, 6);
            for (size_t i = 0; i < parameters.size(); ++i) {
              EXPECT_EQ(parameters[i].ToVector<float>(),
                        expected[i].ToVector<float>());
            }
          });
      // It is the state of an optimizer of one process as well.
      const auto single = optim::Optimizer::Create(saved, rule);
      ASSERT_THAT(optim::LoadOptimizer(**single, path), IsOk());
      RunSteps(**single, saved, 3, 6);
      EXPECT_EQ(saved[0].ToVector<float>(), expected[0].ToVector<float>());
      EXPECT_EQ(saved[2].ToVector<float>(), expected[2].ToVector<float>());
    }
  }
}

TEST(ZeroOptimizerTest, StateOfAnotherOptimizerIsRefusedOnAllRanks) {
  const std::vector<Tensor> parameters = MakeParameters();
  const auto other =
      optim::Optimizer::Create(parameters, optim::Sgd({.lr = 0.1}));
  const tensor::SafetensorsFile state = optim::GetState(**other);
  collectives::RunRanks(
      collectives::MakeLoopbackBackends, 7, [&](ProcessGroup& group) {
        const auto zero = ZeroOptimizer::Create(MakeParameters(),
                                                optim::Adam({.lr = 1}), group);
        EXPECT_THAT((*zero)->SetState(state),
                    StatusIs(absl::StatusCode::kInvalidArgument));
        EXPECT_THAT((*zero)->ConsolidateState(7),
                    StatusIs(absl::StatusCode::kInvalidArgument));
        // Also on ranks without parameters.
        EXPECT_THAT((*zero)->SetOption("momentum", 0.1),
                    StatusIs(absl::StatusCode::kInvalidArgument));
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
