#include "async/busy_timer.h"

#include <chrono>
#include <thread>

#include "async/blocking_region.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

// Passes `time` on the clock.
void Spin(nanoseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

// Time that `work` takes, and that a timer around it measures.
struct Measured {
  nanoseconds wall;
  nanoseconds busy;
  nanoseconds waited() const { return wall - busy; }
};

template <class Work>
Measured Measure(Work work) {
  const auto start = Clock::now();
  BusyTimer timer;
  work();
  const nanoseconds busy = timer.Elapsed();
  return {.wall = Clock::now() - start, .busy = busy};
}

TEST(BusyTimerTest, MeasuresWork) {
  const Measured measured = Measure([] { Spin(milliseconds(2)); });
  EXPECT_GE(measured.busy, milliseconds(2));
  EXPECT_LE(measured.busy, measured.wall);
}

TEST(BusyTimerTest, LeavesOutBlockingRegions) {
  const Measured measured = Measure([] {
    BlockingRegion region;
    Spin(milliseconds(2));
  });
  EXPECT_GE(measured.waited(), milliseconds(2));
}

TEST(BusyTimerTest, LeavesOutEachPauseOnce) {
  const Measured measured = Measure([] {
    BusyTimer::Pause outer;
    Spin(milliseconds(1));
    BlockingRegion region;
    BusyTimer::Pause inner;
    Spin(milliseconds(1));
  });
  EXPECT_GE(measured.waited(), milliseconds(2));
  // Counted twice, the pauses would exceed the time that passed.
  EXPECT_GE(measured.busy, nanoseconds(0));
}

TEST(BusyTimerTest, CountsTimeBetweenPauses) {
  const Measured measured = Measure([] {
    { BusyTimer::Pause pause; }
    Spin(milliseconds(2));
    { BusyTimer::Pause pause; }
  });
  EXPECT_GE(measured.busy, milliseconds(2));
}

TEST(BusyTimerTest, OuterTimerLeavesOutPausesOfTheInner) {
  const Measured outer = Measure([] {
    BusyTimer inner;
    BusyTimer::Pause pause;
    Spin(milliseconds(2));
  });
  EXPECT_GE(outer.waited(), milliseconds(2));
}

TEST(BusyTimerTest, IgnoresPausesBeforeItsTime) {
  Measure([] {
    BusyTimer::Pause pause;
    Spin(milliseconds(2));
  });
  const Measured measured = Measure([] { Spin(milliseconds(1)); });
  EXPECT_GE(measured.busy, milliseconds(1));
}

TEST(BusyTimerTest, IgnoresPausesOfOtherThreads) {
  const Measured measured = Measure([] {
    std::thread other([] {
      BusyTimer timer;
      BusyTimer::Pause pause;
      Spin(milliseconds(2));
    });
    other.join();
  });
  EXPECT_GE(measured.busy, milliseconds(2));
}

}  // namespace
}  // namespace hawser::async
