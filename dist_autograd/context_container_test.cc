#include "dist_autograd/context_container.h"

#include <memory>

#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::dist_autograd {
namespace {

using async::IsOk;
using async::StatusIs;

class ContextContainerTest : public testing::Test {
 protected:
  ContextContainer container_{rpc::WorkerId(2), 0};
};

TEST_F(ContextContainerTest, CreatedContextIsFoundUntilRemoved) {
  auto context = container_.Create();
  ASSERT_THAT(context, IsOk());
  EXPECT_EQ(MakerOf((*context)->id()), 2);
  EXPECT_EQ(*container_.Find((*context)->id()), *context);
  EXPECT_EQ(container_.Remove((*context)->id()), *context);
  EXPECT_THAT(
      container_.Find((*context)->id()),
      StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("has ended")));
  EXPECT_EQ(container_.size(), 0u);
}

TEST_F(ContextContainerTest, UnknownContextIsNotFound) {
  EXPECT_THAT(
      container_.Find(ContextId{77}),
      StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("not known")));
}

TEST_F(ContextContainerTest, ContextOfAnotherWorkerIsMadeOnce) {
  auto first = container_.FindOrCreate(ContextId{77});
  auto second = container_.FindOrCreate(ContextId{77});
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(*first, *second);
}

TEST_F(ContextContainerTest, ContextThatEndedDoesNotComeBack) {
  // Also if its end overtook its first message.
  EXPECT_EQ(container_.Remove(ContextId{77}), nullptr);
  auto late = container_.FindOrCreate(ContextId{77});
  ASSERT_THAT(late, IsOk());
  EXPECT_EQ(*late, nullptr);
  EXPECT_TRUE(container_.HasEnded(ContextId{77}));
}

}  // namespace
}  // namespace hawser::dist_autograd
