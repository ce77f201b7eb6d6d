#include "async/task_local.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::IsNull;
using ::testing::Pointee;

TEST(TaskLocalTest, ScopesNestAndRestore) {
  TaskLocal<int> number;
  TaskLocal<std::string> name;
  EXPECT_THAT(number.get(), IsNull());
  {
    TaskLocal<int>::Scope one(number, 1);
    TaskLocal<std::string>::Scope a(name, "a");
    EXPECT_THAT(number.get(), Pointee(1));
    {
      TaskLocal<int>::Scope two(number, 2);
      EXPECT_THAT(number.get(), Pointee(2));
      EXPECT_THAT(name.get(), Pointee(std::string("a")));
    }
    EXPECT_THAT(number.get(), Pointee(1));
  }
  EXPECT_THAT(number.get(), IsNull());
  EXPECT_THAT(name.get(), IsNull());
}

TEST(TaskContextTest, CapturedContextIsRestoredInAnotherThread) {
  TaskLocal<int> number;
  TaskContext captured;
  {
    TaskLocal<int>::Scope scope(number, 7);
    captured = TaskContext::Capture();
  }
  std::thread other([&] {
    EXPECT_THAT(number.get(), IsNull());
    TaskContext::Scope scope(captured);
    EXPECT_THAT(number.get(), Pointee(7));
  });
  other.join();
}

TEST(TaskContextTest, EmptyContextHidesTheValues) {
  TaskLocal<int> number;
  TaskLocal<int>::Scope scope(number, 1);
  {
    TaskContext::Scope empty{TaskContext()};
    EXPECT_THAT(number.get(), IsNull());
  }
  EXPECT_THAT(number.get(), Pointee(1));
}

TEST(TaskContextTest, ValueLivesAsLongAsTheLastContext) {
  TaskLocal<std::shared_ptr<int>> shared;
  auto value = std::make_shared<int>(3);
  TaskContext captured;
  {
    TaskLocal<std::shared_ptr<int>>::Scope scope(shared, value);
    captured = TaskContext::Capture();
  }
  EXPECT_EQ(value.use_count(), 2);
  TaskContext copy = captured;
  captured = TaskContext();
  EXPECT_EQ(value.use_count(), 2);
  copy = TaskContext();
  EXPECT_EQ(value.use_count(), 1);
}

TEST(TaskContextTest, LongChainIsReleasedWithoutRecursion) {
  TaskLocal<int> number;
  TaskContext context;
  for (int i = 0; i < 200000; ++i) {
    TaskContext::Scope below(context);
    TaskLocal<int>::Scope scope(number, i);
    context = TaskContext::Capture();
  }
  TaskContext::Scope scope(context);
  EXPECT_THAT(number.get(), Pointee(199999));
}

}  // namespace
}  // namespace hawser::async
