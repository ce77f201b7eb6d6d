#include "ipc/yield_core.h"

#include <sched.h>

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

// Pins the calling thread, and the threads that it starts.
void StayOnThisCore() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(sched_getcpu(), &cores);
  ASSERT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

TEST(YieldCoreTest, StopsOnceAnotherThreadKeepsTheCore) {
  StayOnThisCore();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
    }
  });
  // Each time the other thread keeps the core for its time slice, which is
  // longer than the backoff accepts.
  int count = 0;
  while (YieldCore()) ++count;
  EXPECT_GE(count, 1);
  stop = true;
  other.join();
}

}  // namespace
}  // namespace hawser::ipc
