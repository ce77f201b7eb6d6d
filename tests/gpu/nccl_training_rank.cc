// One rank of data-parallel training on GPUs over NCCL, compared with training
// in one process.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/variable.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/loss.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "parallel/communication_hooks.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/gradient_bucket.h"
#include "parallel/testing/hook_passes.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"
#include "tests/gpu/rank_process.h"
#include "tests/training_golden.h"

namespace hawser::tests {
namespace {

using async::IsOk;
using tensor::DType;

// Trains on this rank's part of each batch; returns the parameters.
absl::StatusOr<std::vector<Tensor>> Train(collectives::ProcessGroup& group,
                                          const TrainingGolden& golden,
                                          int64_t bucket_bytes) {
  ASSIGN_OR_RETURN(const auto model, MakeGoldenModel());
  RETURN_IF_ERROR(model->LoadStateDict(golden.start));
  RETURN_IF_ERROR(model->To(tensor::Cuda()));
  ASSIGN_OR_RETURN(
      const auto optimizer,
      optim::Optimizer::Create(
          model->parameters(),
          optim::Sgd({.lr = golden.lr, .momentum = golden.momentum})));
  ASSIGN_OR_RETURN(
      const auto parallel,
      parallel::DistributedDataParallel::Create(
          *model, group,
          {.bucket_bytes = bucket_bytes, .first_bucket_bytes = bucket_bytes}));
  for (size_t step = 0; step < golden.inputs.size(); ++step) {
    const int64_t part = golden.inputs[step].dim(0) / group.size();
    const int64_t begin = part * group.rank();
    ASSIGN_OR_RETURN(const Tensor rows,
                     golden.inputs[step].Narrow(0, begin, part));
    ASSIGN_OR_RETURN(const Tensor classes,
                     golden.labels[step].Narrow(0, begin, part));
    ASSIGN_OR_RETURN(const Tensor inputs, rows.To(tensor::Cuda()));
    ASSIGN_OR_RETURN(const Tensor labels, classes.To(tensor::Cuda()));
    optimizer->ZeroGrad();
    ASSIGN_OR_RETURN(
        const Tensor loss, parallel->Forward([&]() -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const Tensor logits, model->Forward(inputs));
          return nn::CrossEntropyLoss(logits, labels);
        }));
    RETURN_IF_ERROR(autograd::Backward(loss));
    RETURN_IF_ERROR(optimizer->Step());
  }
  std::vector<Tensor> parameters;
  for (const auto& [name, parameter] : model->named_parameters()) {
    ASSIGN_OR_RETURN(const Tensor here, parameter.Detach().To(tensor::kCpu));
    parameters.push_back(here);
  }
  return parameters;
}

TEST(NcclTrainingTest, EqualsTrainingInOneProcess) {
  if (!HasGpu()) GTEST_SKIP() << "a GPU is not available";
  const RankProcess self = GetRankProcess();
  const TrainingGolden golden = ReadTrainingGolden();
  const auto store = OpenNextStore();
  const auto group = collectives::MakeProcessGroup(
      *store, {.rank = self.rank, .size = self.size, .backend = "nccl"});
  ASSERT_THAT(group, IsOk());
  // A bucket for each parameter, and one for all.
  for (const int64_t bucket_bytes : {int64_t{1}, int64_t{1} << 20}) {
    const auto parameters = Train(**group, golden, bucket_bytes);
    ASSERT_THAT(parameters, IsOk());
    ASSERT_EQ(parameters->size(), golden.end.size());
    for (size_t i = 0; i < golden.end.size(); ++i) {
      const auto& [name, expected] = golden.end[i];
      const std::vector<double> values = (*parameters)[i].ToVector<double>();
      const std::vector<double> wanted = expected.ToVector<double>();
      ASSERT_EQ(values.size(), wanted.size()) << name;
      for (size_t j = 0; j < wanted.size(); ++j) {
        ASSERT_NEAR(values[j], wanted[j], 1e-8) << name << " " << j;
      }
    }
  }
}

TEST(NcclTrainingTest, HooksReduceAsOnTheCpu) {
  if (!HasGpu()) GTEST_SKIP() << "a GPU is not available";
  const RankProcess self = GetRankProcess();
  const auto store = OpenNextStore();
  const auto group = collectives::MakeProcessGroup(
      *store, {.rank = self.rank, .size = self.size, .backend = "nccl"});
  ASSERT_THAT(group, IsOk());
  const struct {
    std::string name;
    std::function<parallel::CommunicationHook()> make;
    DType dtype;
    double bound;
  } cases[] = {
      {"bf16", [] { return parallel::CompressHook(DType::kBF16); }, DType::kF32,
       0.05},
      {"PowerSGD", [] { return parallel::PowerSgdHook({.rank = 2}); },
       DType::kF64, 1e-8},
      {"top-k", [] { return parallel::TopKHook(0.1); }, DType::kF32, 1e-6}};
  for (const auto& [name, make, dtype, bound] : cases) {
    const auto expected =
        parallel::RunHookPasses(**group, make(), dtype, tensor::kCpu);
    const auto actual =
        parallel::RunHookPasses(**group, make(), dtype, tensor::Cuda());
    ASSERT_THAT(expected, IsOk()) << name;
    ASSERT_THAT(actual, IsOk()) << name;
    for (size_t pass = 0; pass < expected->size(); ++pass) {
      EXPECT_THAT(
          (*actual)[pass],
          testing::Pointwise(testing::DoubleNear(bound), (*expected)[pass]))
          << name << ", pass " << pass;
    }
  }
}

}  // namespace
}  // namespace hawser::tests
