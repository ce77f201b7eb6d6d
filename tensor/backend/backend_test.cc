#include "tensor/backend/backend.h"

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/device.h"

namespace hawser::tensor {
namespace {

using async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BackendTest, ADeviceWithoutKernelsIsNamed) {
  EXPECT_THAT(BackendFor(Cuda(3)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("cuda:3"), HasSubstr("--config=cuda"))));
}

}  // namespace
}  // namespace hawser::tensor
