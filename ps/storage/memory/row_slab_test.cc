#include "ps/storage/memory/row_slab.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

struct Case {
  size_t row_bytes;
  size_t rows;
};

class RowSlabTest : public ::testing::TestWithParam<Case> {};

// Fills rows with their slots, and looks for them again: none lies in another
// one, and none has moved.
TEST_P(RowSlabTest, RowsAreApartAndDoNotMove) {
  const auto [row_bytes, rows] = GetParam();
  RowSlab slab(row_bytes);
  std::vector<std::byte*> places;
  for (size_t i = 0; i < rows; ++i) {
    ASSERT_THAT(slab.Reserve(1), IsOk());
    ASSERT_EQ(slab.Allocate(), i);
    places.push_back(slab.Row(static_cast<uint32_t>(i)));
    std::memset(places.back(), static_cast<int>(i * 31 % 251), row_bytes);
  }
  EXPECT_EQ(slab.end(), rows);
  for (size_t i = 0; i < rows; ++i) {
    std::byte* const row = slab.Row(static_cast<uint32_t>(i));
    ASSERT_EQ(row, places[i]);
    const auto value = static_cast<std::byte>(i * 31 % 251);
    ASSERT_EQ(std::count(row, row + row_bytes, value), row_bytes) << i;
  }
  // At most a small chunk more, and a large one from its size on.
  const size_t payload = rows * row_bytes;
  const size_t large = size_t{512} << 10;
  const size_t chunk = payload < large ? size_t{64} << 10 : large;
  EXPECT_LE(slab.bytes(), payload + std::max(chunk, row_bytes));
}

INSTANTIATE_TEST_SUITE_P(Sizes, RowSlabTest,
                         ::testing::Values(Case{4, 1}, Case{4, 500'000},
                                           Case{68, 1}, Case{68, 100'000},
                                           Case{260, 40'000}, Case{1000, 9'000},
                                           Case{40'000, 300}, Case{300'000, 50},
                                           Case{524'288, 40},
                                           Case{1'500'000, 10}));

TEST(RowSlabTest, FreeSlotsAreUsedAgainBeforeNewOnes) {
  RowSlab slab(68);
  ASSERT_THAT(slab.Reserve(1000), IsOk());
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(slab.Allocate(), i);
  slab.Free(7);
  slab.Free(500);
  ASSERT_THAT(slab.Reserve(3), IsOk());
  EXPECT_EQ(slab.Allocate(), 500);
  EXPECT_EQ(slab.Allocate(), 7);
  EXPECT_EQ(slab.Allocate(), 1000);
}

TEST(RowSlabTest, NumbersOfSlotsAreBounded) {
  RowSlab slab(4);
  EXPECT_THAT(slab.Reserve(UINT32_MAX),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(slab.bytes(), 0);
}

}  // namespace
}  // namespace hawser::ps
