#include "benchmarks/process_usage.h"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "benchmarks/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::benchmarks {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;
using ::testing::Gt;

// A process that has ended, and that was waited for.
pid_t EndedProcess() {
  const auto child = ChildProcess::Start({"/bin/true"});
  return (*child)->pid();
}

TEST(ProcessUsageTest, CpuTimeOfABusyProcessGrows) {
  const auto child =
      ChildProcess::Start({"/bin/sh", "-c", "while :; do :; done"});
  ASSERT_THAT(child, IsOk());
  const pid_t pid = (*child)->pid();
  const auto before = CpuTimeOf(pid);
  ASSERT_THAT(before, IsOk());
  while (*CpuTimeOf(pid) < *before + absl::Milliseconds(20)) {
    std::this_thread::yield();
  }
}

TEST(ProcessUsageTest, CpuTimeIncludesThreadsThatHaveEnded) {
  const auto before = CpuTimeOf(getpid());
  ASSERT_THAT(before, IsOk());
  std::thread([&] {
    while (*CpuTimeOf(getpid()) < *before + absl::Milliseconds(20)) {
    }
  }).join();
  EXPECT_GE(*CpuTimeOf(getpid()), *before + absl::Milliseconds(20));
}

TEST(ProcessUsageTest, MemoryGrowsWithTouchedPages) {
  const auto before = ProportionalBytesOf(getpid());
  ASSERT_THAT(before, IsOkAndHolds(Gt(0)));
  constexpr size_t kBytes = size_t{64} << 20;
  std::vector<char> pages(kBytes, 'x');
  EXPECT_THAT(ProportionalBytesOf(getpid()),
              IsOkAndHolds(Gt(*before + static_cast<int64_t>(kBytes) / 2)));
  EXPECT_EQ(std::memchr(pages.data(), 'y', kBytes), nullptr);
}

TEST(ProcessUsageTest, EndedProcessIsNotFound) {
  const pid_t pid = EndedProcess();
  EXPECT_THAT(CpuTimeOf(pid), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ProportionalBytesOf(pid), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hawser::benchmarks
