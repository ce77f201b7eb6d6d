#include "autograd/grad_mode.h"

#include <thread>

#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

TEST(GradModeTest, GuardsNestAndRestore) {
  EXPECT_TRUE(GradEnabled());
  {
    NoGradGuard no_grad;
    EXPECT_FALSE(GradEnabled());
    {
      EnableGradGuard enable;
      EXPECT_TRUE(GradEnabled());
      NoGradGuard inner;
      EXPECT_FALSE(GradEnabled());
    }
    EXPECT_FALSE(GradEnabled());
  }
  EXPECT_TRUE(GradEnabled());
}

TEST(GradModeTest, EachThreadHasItsOwnMode) {
  NoGradGuard no_grad;
  bool enabled = false;
  std::thread([&] { enabled = GradEnabled(); }).join();
  EXPECT_TRUE(enabled);
}

}  // namespace
}  // namespace hawser::autograd
