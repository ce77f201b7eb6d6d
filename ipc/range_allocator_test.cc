#include "ipc/range_allocator.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "async/random_source.h"
#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

TEST(RangeAllocatorTest, TakesTheFirstRangeThatFits) {
  RangeAllocator ranges(64, 1024);
  EXPECT_EQ(ranges.Allocate(100), 64u);
  EXPECT_EQ(ranges.Allocate(1), 192u);
  EXPECT_EQ(ranges.Allocate(768), 256u);
  EXPECT_EQ(ranges.Allocate(1), std::nullopt);
  ranges.Free(64, 100);
  EXPECT_EQ(ranges.Allocate(129), std::nullopt);
  EXPECT_EQ(ranges.Allocate(64), 64u);
  EXPECT_EQ(ranges.Allocate(64), 128u);
}

TEST(RangeAllocatorTest, FreeRangesAreJoined) {
  for (const auto& order : std::vector<std::vector<size_t>>{
           {0, 128, 256}, {256, 128, 0}, {0, 256, 128}, {128, 0, 256}}) {
    RangeAllocator ranges(0, 384);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ranges.Allocate(128), 128 * i);
    for (size_t offset : order) ranges.Free(offset, 128);
    EXPECT_EQ(ranges.Allocate(384), 0u);
  }
}

TEST(RangeAllocatorTest, RangesNeverOverlap) {
  constexpr size_t kBytes = size_t{1} << 16;
  async::RandomSource random(7);
  RangeAllocator ranges(0, kBytes);
  std::vector<bool> used(kBytes);
  std::vector<std::pair<size_t, size_t>> taken;
  size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random.Below(100) < 52) {
      const size_t bytes = 1 + random.Below(4000);
      const std::optional<size_t> offset = ranges.Allocate(bytes);
      if (!offset.has_value()) {
        ++refused;
        continue;
      }
      ASSERT_LE(*offset + bytes, kBytes);
      for (size_t at = *offset; at < *offset + bytes; ++at) {
        ASSERT_FALSE(used[at]);
        used[at] = true;
      }
      taken.emplace_back(*offset, bytes);
    } else if (!taken.empty()) {
      std::swap(taken[random.Below(taken.size())], taken.back());
      const auto [offset, bytes] = taken.back();
      taken.pop_back();
      for (size_t at = offset; at < offset + bytes; ++at) used[at] = false;
      ranges.Free(offset, bytes);
    }
  }
  EXPECT_GT(refused, 0u);
  for (const auto& [offset, bytes] : taken) ranges.Free(offset, bytes);
  EXPECT_EQ(ranges.Allocate(kBytes), 0u);
}

TEST(RangeAllocatorDeathTest, RangeIsFreedOnce) {
  RangeAllocator ranges(0, 256);
  ASSERT_EQ(ranges.Allocate(64), 0u);
  ranges.Free(0, 64);
  EXPECT_DEATH(ranges.Free(0, 64), "freed twice");
}

}  // namespace
}  // namespace hawser::ipc
