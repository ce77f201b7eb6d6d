// Tests that training steps on a CUDA device give the same results as on the
// CPU.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/conv2d.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pool.h"
#include "autograd/ops/softmax.h"
#include "autograd/ops/view.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/memory/device_allocators.h"
#include "tensor/ops/in_place.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser {
namespace {

using async::IsOk;
using tensor::Activation;
using tensor::Cuda;
using tensor::Device;
using tensor::DType;
using tensor::ExpectTensor;
using tensor::kCpu;
using tensor::TestTensor;
using tensor::Values;

constexpr int64_t kBatch = 16;
constexpr double kLearningRate = 0.1;

// Returns the logits [kBatch, 5] of a batch.
using Model = absl::StatusOr<Tensor> (*)(const Tensor& x,
                                         const std::vector<Tensor>& parameters);

absl::StatusOr<Tensor> Perceptron(const Tensor& x,
                                  const std::vector<Tensor>& p) {
  ASSIGN_OR_RETURN(const Tensor hidden,
                   autograd::Linear(x, p[0], p[1], Activation::kRelu));
  ASSIGN_OR_RETURN(const Tensor curved, autograd::Tanh(hidden));
  return autograd::Linear(curved, p[2], p[3]);
}

absl::StatusOr<Tensor> Convolution(const Tensor& x,
                                   const std::vector<Tensor>& p) {
  ASSIGN_OR_RETURN(const Tensor images,
                   autograd::Reshape(x, {kBatch, 1, 6, 6}));
  ASSIGN_OR_RETURN(const Tensor maps,
                   autograd::Conv2d(images, p[0], p[1], {.padding = {1, 1}}));
  ASSIGN_OR_RETURN(const Tensor active, autograd::Relu(maps));
  ASSIGN_OR_RETURN(const Tensor pooled,
                   autograd::MaxPool2d(active, {.kernel = {2, 2}}));
  ASSIGN_OR_RETURN(const Tensor flat, autograd::Reshape(pooled, {kBatch, 27}));
  return autograd::Linear(flat, p[2], p[3]);
}

// Runs one step of plain gradient descent. Returns the loss before the step.
absl::StatusOr<double> Step(Model model, const Tensor& x, const Tensor& labels,
                            std::vector<Tensor>& parameters) {
  ASSIGN_OR_RETURN(const Tensor logits, model(x, parameters));
  ASSIGN_OR_RETURN(const Tensor loss,
                   autograd::SoftmaxCrossEntropy(logits, labels));
  RETURN_IF_ERROR(autograd::Backward(loss));
  for (Tensor& parameter : parameters) {
    const Tensor gradient = autograd::Grad(parameter);
    const autograd::NoGradGuard no_grad;
    RETURN_IF_ERROR(tensor::AddInPlace(parameter, gradient, -kLearningRate));
    autograd::ZeroGrad(parameter);
  }
  return loss.item<double>();
}

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> parameters;
};

absl::StatusOr<Run> Train(Model model, const Tensor& x, const Tensor& labels,
                          const std::vector<Tensor>& initial, Device device) {
  Run run;
  ASSIGN_OR_RETURN(const Tensor images, x.To(device));
  ASSIGN_OR_RETURN(const Tensor targets, labels.To(device));
  for (const Tensor& parameter : initial) {
    ASSIGN_OR_RETURN(const Tensor copy, parameter.Detach().Clone());
    ASSIGN_OR_RETURN(Tensor moved, copy.To(device));
    RETURN_IF_ERROR(autograd::SetRequiresGrad(moved));
    run.parameters.push_back(moved);
  }
  for (int step = 0; step < 10; ++step) {
    ASSIGN_OR_RETURN(const double loss,
                     Step(model, images, targets, run.parameters));
    run.losses.push_back(loss);
  }
  return run;
}

class CudaTrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto allocator = tensor::AllocatorFor(Cuda());
    if (!allocator.ok())
      GTEST_SKIP() << "a GPU is not available: " << allocator.status();
  }

  void ExpectSameTraining(Model model, const std::vector<Tensor>& initial) {
    const Tensor x = TestTensor({kBatch, 36}, initial[0].dtype(), 1, -1, 1);
    const Tensor labels = TestTensor({kBatch}, DType::kI64, 2, 0, 4);
    const auto here = Train(model, x, labels, initial, kCpu);
    ASSERT_THAT(here, IsOk());
    const auto there = Train(model, x, labels, initial, Cuda());
    ASSERT_THAT(there, IsOk());
    for (size_t i = 0; i < here->losses.size(); ++i) {
      EXPECT_NEAR(there->losses[i], here->losses[i], 1e-4) << "step " << i;
    }
    EXPECT_LT(here->losses.back(), here->losses.front());
    for (size_t i = 0; i < initial.size(); ++i) {
      const Tensor& expected = here->parameters[i];
      const Tensor& actual = there->parameters[i];
      EXPECT_EQ(actual.device(), Cuda());
      ExpectTensor(*actual.To(kCpu), expected.shape(), Values(expected), 1e-4);
    }
  }
};

TEST_F(CudaTrainingTest, PerceptronTrainsAsOnTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    ExpectSameTraining(Perceptron, {TestTensor({12, 36}, dtype, 3, -0.2, 0.2),
                                    TestTensor({12}, dtype, 4, -0.2, 0.2),
                                    TestTensor({5, 12}, dtype, 5, -0.3, 0.3),
                                    TestTensor({5}, dtype, 6, -0.3, 0.3)});
  }
}

TEST_F(CudaTrainingTest, ConvolutionTrainsAsOnTheCpu) {
  ExpectSameTraining(Convolution,
                     {TestTensor({3, 1, 3, 3}, DType::kF32, 3, -0.4, 0.4),
                      TestTensor({3}, DType::kF32, 4, -0.2, 0.2),
                      TestTensor({5, 27}, DType::kF32, 5, -0.2, 0.2),
                      TestTensor({5}, DType::kF32, 6, -0.2, 0.2)});
}

TEST_F(CudaTrainingTest, GradientOnAnotherDeviceIsRejected) {
  const Tensor parameter = TestTensor({3});
  ASSERT_THAT(autograd::SetRequiresGrad(parameter), IsOk());
  EXPECT_THAT(autograd::SetGrad(parameter, *TestTensor({3}).To(Cuda())),
              async::StatusIs(absl::StatusCode::kInvalidArgument,
                              testing::HasSubstr("cuda:0")));
}

}  // namespace
}  // namespace hawser
