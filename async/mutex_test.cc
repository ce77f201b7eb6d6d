#include "async/mutex.h"

#include <chrono>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

struct Counter {
  Mutex mutex;
  CondVar changed;
  int value ABSL_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, ExcludesThreads) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        MutexLock lock(&counter.mutex);
        ++counter.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&counter.mutex);
  EXPECT_EQ(counter.value, 4000);
}

TEST(CondVarTest, WaitSeesTheChange) {
  Counter counter;
  std::thread setter([&] {
    MutexLock lock(&counter.mutex);
    counter.value = 1;
    counter.changed.NotifyAll();
  });
  {
    MutexLock lock(&counter.mutex);
    while (counter.value == 0) {
      EXPECT_TRUE(counter.changed.WaitUntil(
          &counter.mutex, std::chrono::steady_clock::time_point::max()));
    }
  }
  setter.join();
}

TEST(CondVarTest, PassedDeadlineReturnsWithTheLockHeld) {
  Counter counter;
  MutexLock lock(&counter.mutex);
  EXPECT_FALSE(counter.changed.WaitUntil(&counter.mutex,
                                         std::chrono::steady_clock::now()));
  counter.value = 1;
}

}  // namespace
}  // namespace hawser::async
