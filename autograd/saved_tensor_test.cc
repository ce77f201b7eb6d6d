#include "autograd/saved_tensor.h"

#include <memory>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/fake_node.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

TEST(SavedTensorTest, ReturnsTheTensor) {
  const Tensor tensor = Tensor::Scalar(1);
  SavedTensor saved;
  saved.Save(tensor);
  ASSERT_THAT(saved.Unpack(), IsOk());
  EXPECT_TRUE(saved.Unpack()->is_same(tensor));
}

TEST(SavedTensorTest, UndefinedStaysUndefinedAlsoAfterRelease) {
  SavedTensor saved;
  saved.Save(Tensor());
  saved.SaveOutput(Tensor());
  saved.Release();
  ASSERT_THAT(saved.Unpack(), IsOk());
  EXPECT_FALSE(saved.Unpack()->defined());
}

TEST(SavedTensorTest, InPlaceWriteThroughAnyViewIsAnError) {
  const Tensor tensor = Tensor::Zeros({2, 3});
  tensor.BumpVersion();
  SavedTensor saved;
  saved.Save(tensor);
  EXPECT_THAT(saved.Unpack(), IsOk());
  Tensor row = *tensor.Select(0, 1);
  ASSERT_THAT(row.CopyFrom(Tensor::Ones({3})), IsOk());
  EXPECT_THAT(saved.Unpack(),
              StatusIs(kFailedPrecondition, HasSubstr("modified in place")));
}

TEST(SavedTensorTest, ReleasedTensorIsAnErrorAndIsFreed) {
  Tensor tensor = Tensor::Scalar(1);
  SavedTensor saved;
  saved.Save(tensor);
  saved.Release();
  EXPECT_THAT(saved.Unpack(),
              StatusIs(kFailedPrecondition, HasSubstr("a second time")));
  EXPECT_TRUE(tensor.is_unshared());
}

TEST(SavedTensorTest, OutputIsKeptWithoutItsHistory) {
  const Tensor tensor = Tensor::Scalar(1);
  auto node = std::make_shared<FakeNode>("node", std::vector<Edge>{});
  SetHistory(tensor, node, 0);
  SavedTensor saved;
  saved.SaveOutput(tensor);
  ASSERT_THAT(saved.Unpack(), IsOk());
  EXPECT_FALSE(RequiresGrad(*saved.Unpack()));
  EXPECT_EQ(saved.Unpack()->storage(), tensor.storage());
  tensor.BumpVersion();
  EXPECT_THAT(saved.Unpack(), StatusIs(kFailedPrecondition));
}

}  // namespace
}  // namespace hawser::autograd
