#include "ps/storage/memory/copy_rows.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

// Rows of any alignment, in reverse order, with a gap before and behind.
TEST(CopyRowsTest, CopiesRowsToTheirPositionsAndNothingElse) {
  for (size_t row_bytes : {32, 64, 128, 256}) {
    const RowCopier copy = RowCopierFor(row_bytes);
    ASSERT_NE(copy, nullptr) << row_bytes;
    constexpr size_t kRows = 7;
    const size_t stride = row_bytes + 4;
    std::vector<std::byte> source(kRows * stride);
    for (size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<std::byte>(i % 251 + 1);
    }
    std::vector<const std::byte*> rows;
    std::vector<uint32_t> positions;
    for (size_t i = 0; i < kRows; ++i) {
      rows.push_back(&source[i * stride]);
      positions.push_back(static_cast<uint32_t>(kRows - i));
    }
    std::vector<std::byte> copies((kRows + 2) * row_bytes);
    copy(rows.data(), positions.data(), kRows, copies.data());
    for (size_t i = 0; i < copies.size(); ++i) {
      const size_t position = i / row_bytes;
      const bool copied = position >= 1 && position <= kRows;
      const std::byte expected =
          copied ? rows[kRows - position][i % row_bytes] : std::byte{0};
      ASSERT_EQ(copies[i], expected) << row_bytes << ", byte " << i;
    }
    copy(rows.data(), positions.data(), 0, nullptr);
  }
}

TEST(CopyRowsTest, OtherSizesHaveNoCopier) {
  for (size_t row_bytes : {0, 4, 16, 60, 68, 512}) {
    EXPECT_EQ(RowCopierFor(row_bytes), nullptr) << row_bytes;
  }
}

}  // namespace
}  // namespace hawser::ps
