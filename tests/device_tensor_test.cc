// Tests of tensors on a device other than the CPU. Messages and distributed
// optimizers reject them. The device is a fake.

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "rpc/functions/function.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref.h"
#include "tensor/device.h"
#include "tensor/fake_device.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

inline constexpr rpc::Function<Tensor(Tensor)> kTriple{"device.Triple"};
inline constexpr rpc::Function<Tensor()> kMakeOnDevice{"device.Make"};

Tensor LeafOnDevice(float value) {
  const Tensor leaf = Tensor::Full({1}, value, {.device = tensor::Cuda()});
  EXPECT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  return leaf;
}

auto IsRefused() {
  return StatusIs(
      absl::StatusCode::kInvalidArgument,
      AllOf(HasSubstr("f32[1] on cuda:0"), HasSubstr("autograd::ToDevice")));
}

class DeviceTensorTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    tensor::RegisterFakeDevice();
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(
        r.Register(kTriple,
                   [](const Tensor& x) { return autograd::MulScalar(x, 3); }),
        IsOk());
    ASSERT_THAT(r.Register(kMakeOnDevice, [] { return LeafOnDevice(2); }),
                IsOk());
    StartDistributed(job_, 2);
  }
  void TearDown() override { job_.StopAll(); }

  rpc::Agent& agent() { return job_.agent(0); }

  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(DeviceTensorTest, ArgumentOnADeviceIsRejectedByTheCaller) {
  EXPECT_THAT(agent().Sync("w1", kTriple, LeafOnDevice(2)), IsRefused());
}

TEST_P(DeviceTensorTest, ResultOnADeviceIsRejected) {
  EXPECT_THAT(agent().Sync("w1", kMakeOnDevice), IsRefused());
  const auto reference = rref::Remote(agent(), "w1", kMakeOnDevice);
  ASSERT_THAT(reference, IsOk());
  EXPECT_THAT(reference->ToHere(), IsRefused());
}

// FAST mode would wait for the gradients of a recorded message.
TEST_P(DeviceTensorTest, RejectedMessageIsNotRecorded) {
  auto context = dist_autograd::ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  EXPECT_THAT(agent().Sync("w1", kTriple, LeafOnDevice(2)), IsRefused());
  const Tensor leaf = Tensor::Ones({1});
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  const auto y = agent().Sync("w1", kTriple, leaf);
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(
      dist_autograd::Backward(agent(), (*context)->id(), {*y},
                              {.mode = dist_autograd::BackwardMode::kFast}),
      IsOk());
}

TEST_P(DeviceTensorTest, GradientOfACopyReturnsToTheDevice) {
  auto context = dist_autograd::ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = LeafOnDevice(2);
  const auto on_cpu = autograd::ToDevice(leaf, tensor::kCpu);
  ASSERT_THAT(on_cpu, IsOk());
  const auto y = agent().Sync("w1", kTriple, *on_cpu);
  ASSERT_THAT(y, IsOk());
  ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*y}), IsOk());
  const auto gradients = dist_autograd::GetGradients(agent(), (*context)->id());
  ASSERT_THAT(gradients, IsOk());
  const Tensor gradient = dist_autograd::FindGradient(*gradients, leaf);
  ASSERT_TRUE(gradient.defined());
  EXPECT_EQ(gradient.device(), tensor::Cuda());
  EXPECT_THAT(gradient.item<float>(), async::IsOkAndHolds(3));
}

TEST_P(DeviceTensorTest, OptimizerRejectsParametersOnADevice) {
  const auto parameter = rref::Remote(agent(), "w1", kMakeOnDevice);
  ASSERT_THAT(parameter, IsOk());
  EXPECT_THAT(
      dist_optim::DistributedOptimizer::Create(agent(), optim::Sgd({.lr = 1}),
                                               {*parameter}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'w1'"), HasSubstr("parameter 0 of group 0"),
                     HasSubstr("on cuda:0"))));
}

INSTANTIATE_TEST_SUITE_P(Transports, DeviceTensorTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests
