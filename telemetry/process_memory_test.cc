#include "telemetry/process_memory.h"

#include <sys/resource.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "gtest/gtest.h"

namespace hawser::telemetry {
namespace {

constexpr size_t kBytes = size_t{64} << 20;

TEST(ProcessMemoryTest, TouchedMemoryIsResident) {
  const size_t before = ResidentBytes();
  EXPECT_GT(before, size_t{1} << 20);
  const auto bytes = std::make_unique_for_overwrite<char[]>(kBytes);
  std::memset(bytes.get(), 1, kBytes);
  const size_t after = ResidentBytes();
  EXPECT_GT(after, before + kBytes / 2);
  EXPECT_LT(after, before + 2 * kBytes);
}

TEST(ProcessMemoryTest, ResourceLimitsCount) {
  const size_t all = UsableMemoryBytes();
  EXPECT_GT(all, kBytes);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &limit), 0);
  const rlimit old = limit;
  limit.rlim_cur = all / 2;
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
  EXPECT_EQ(UsableMemoryBytes(), all / 2);
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &old), 0);
}

}  // namespace
}  // namespace hawser::telemetry
