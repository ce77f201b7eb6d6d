#include "tensor/device.h"

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

TEST(DeviceTest, TextReadsBack) {
  EXPECT_THAT(Device::Parse("cpu"), IsOkAndHolds(kCpu));
  EXPECT_THAT(Device::Parse("cuda"), IsOkAndHolds(Cuda(0)));
  EXPECT_THAT(Device::Parse("cuda:13"), IsOkAndHolds(Cuda(13)));
  EXPECT_EQ(kCpu.ToString(), "cpu");
  EXPECT_EQ(Cuda(2).ToString(), "cuda:2");
}

TEST(DeviceTest, OtherTextIsRefused) {
  for (const char* text : {"", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:1x",
                           "cuda:99999999999", "tpu"}) {
    EXPECT_THAT(Device::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

}  // namespace
}  // namespace hawser::tensor
