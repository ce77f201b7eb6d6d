#include "rpc/transport/cancellation.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

TEST(CancellationTest, RunsCallbacksOnce) {
  auto cancellation = std::make_shared<Cancellation>();
  int runs = 0;
  Cancellation::Registration registration =
      cancellation->OnCancel([&] { ++runs; });
  EXPECT_FALSE(cancellation->cancelled());
  cancellation->Cancel();
  cancellation->Cancel();
  EXPECT_TRUE(cancellation->cancelled());
  EXPECT_EQ(runs, 1);
}

TEST(CancellationTest, LateCallbackRunsAtOnce) {
  auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  bool ran = false;
  Cancellation::Registration registration =
      cancellation->OnCancel([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(CancellationTest, EndedRegistrationDoesNotRun) {
  auto cancellation = std::make_shared<Cancellation>();
  bool ran = false;
  Cancellation::Registration kept;
  {
    Cancellation::Registration registration =
        cancellation->OnCancel([&] { ran = true; });
    kept = std::move(registration);
  }
  kept.Reset();
  cancellation->Cancel();
  EXPECT_FALSE(ran);
}

TEST(CancellationTest, RegistrationMayOutliveIt) {
  Cancellation::Registration registration;
  {
    auto cancellation = std::make_shared<Cancellation>();
    registration = cancellation->OnCancel([] {});
  }
  registration.Reset();
}

TEST(CancellationTest, RegisteringWhileCancellingRunsEachOnce) {
  for (int round = 0; round < 100; ++round) {
    auto cancellation = std::make_shared<Cancellation>();
    std::atomic<int> runs{0};
    std::thread canceller([&] { cancellation->Cancel(); });
    std::vector<Cancellation::Registration> registrations;
    for (int i = 0; i < 10; ++i) {
      registrations.push_back(cancellation->OnCancel([&] { ++runs; }));
    }
    canceller.join();
    EXPECT_EQ(runs, 10);
  }
}

}  // namespace
}  // namespace hawser::rpc
