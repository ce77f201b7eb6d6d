// Tensors on a device that is not the CPU: a fake one, whose memory is the
// host's.

#include "tensor/device_copy.h"

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/fake_device.h"
#include "tensor/memory/device_allocators.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DeviceCopyTest, TensorsMoveToADeviceAndBack) {
  const Tensor host = *Tensor::Arange(6).Reshape({2, 3});
  EXPECT_THAT(host.To(Cuda()), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("built without")));
  RegisterAllocators(DeviceType::kCuda, &FakeDeviceAt);
  EXPECT_THAT(host.To(Cuda()), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("from cpu to cuda:0")));
  RegisterDeviceCopy(DeviceType::kCuda, &FakeDeviceCopy);
  EXPECT_THAT(host.To(Cuda(1)), StatusIs(absl::StatusCode::kInvalidArgument));
  {
    const auto device = host.To(Cuda());
    ASSERT_THAT(device, IsOk());
    EXPECT_EQ(device->device(), Cuda());
    EXPECT_EQ(device->ToString(), "f32[2, 3] on cuda:0");
    EXPECT_EQ(NumFakeDeviceBlocks(), 1);
    const Tensor transposed = *device->T();
    EXPECT_THAT(transposed.ToVector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_THAT(transposed.To(kCpu)->ToVector<float>(),
                ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_EQ(*device->Select(0, 1)->Select(0, 2)->item<double>(), 5);
    EXPECT_EQ(device->To(DType::kF64)->device(), Cuda());
    Tensor into = Tensor::Zeros({2, 3}, {.device = Cuda()});
    EXPECT_THAT(into.CopyFrom(host), IsOk());
    EXPECT_THAT(into.ToVector<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_DEATH(into.data<float>(), "on cuda:0 as f32 in host memory");
  }
  EXPECT_EQ(NumFakeDeviceBlocks(), 0);
}

}  // namespace
}  // namespace hawser::tensor
