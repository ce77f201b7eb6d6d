#include "async/yielding_mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::async {
namespace {

TEST(YieldingMutexTest, YieldReturnsWhenNobodyWaits) {
  YieldingMutex mutex;
  const YieldingMutexLock lock(&mutex);
  mutex.Yield();
}

// Of a thread that never unlocks the mutex otherwise.
TEST(YieldingMutexTest, YieldLetsAllThatWaitHaveTheMutex) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 500;
  YieldingMutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  {
    const YieldingMutexLock lock(&mutex);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int t = 0; t < kTimes; ++t) {
          const YieldingMutexLock entered(&mutex);
          ++count;
        }
      });
    }
    int seen = 0;
    while (count < kThreads * kTimes) {
      mutex.Yield();
      EXPECT_GE(count, seen);
      seen = count;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kTimes);
}

}  // namespace
}  // namespace hawser::async
