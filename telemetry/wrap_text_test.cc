#include "telemetry/wrap_text.h"

#include "gtest/gtest.h"

namespace hawser::telemetry {
namespace {

TEST(WrapTextTest, LinesEndBeforeTheLastColumn) {
  EXPECT_EQ(WrapText("one two three", 0, 7), "one two\nthree\n");
  EXPECT_EQ(WrapText("one two three", 0, 6), "one\ntwo\nthree\n");
  EXPECT_EQ(WrapText("one two", 2, 8), "  one\n  two\n");
  EXPECT_EQ(WrapText("one two", 2, 9), "  one two\n");
}

TEST(WrapTextTest, LongWordsHaveTheirOwnLine) {
  EXPECT_EQ(WrapText("a incarnation b", 1, 5), " a\n incarnation\n b\n");
}

TEST(WrapTextTest, SpacesAndNewlinesSeparateWords) {
  EXPECT_EQ(WrapText("  a\n b  ", 0, 80), "a b\n");
  EXPECT_EQ(WrapText("", 4, 80), "");
}

}  // namespace
}  // namespace hawser::telemetry
