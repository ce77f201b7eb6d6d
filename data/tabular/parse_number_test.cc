#include "data/tabular/parse_number.h"

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

auto Refused(const char* why) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
}

TEST(ParseKeyTest, AllNumbersOf64Bits) {
  EXPECT_THAT(ParseKey("0"), IsOkAndHolds(uint64_t{0}));
  EXPECT_THAT(ParseKey("007"), IsOkAndHolds(uint64_t{7}));
  EXPECT_THAT(ParseKey("18446744073709551615"),
              IsOkAndHolds(std::numeric_limits<uint64_t>::max()));
}

TEST(ParseKeyTest, OtherTextIsRefused) {
  EXPECT_THAT(ParseKey("18446744073709551616"),
              Refused("\"18446744073709551616\" does not fit 64 bits"));
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "a"}) {
    EXPECT_THAT(ParseKey(text), Refused("is not a number")) << text;
  }
}

TEST(ParseIntegerTest, WholeNumbersWithSign) {
  EXPECT_THAT(ParseInteger("0"), IsOkAndHolds(int64_t{0}));
  EXPECT_THAT(ParseInteger("-12"), IsOkAndHolds(int64_t{-12}));
  EXPECT_THAT(ParseInteger("9223372036854775807"),
              IsOkAndHolds(std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(ParseInteger("-9223372036854775808"),
              IsOkAndHolds(std::numeric_limits<int64_t>::min()));
}

TEST(ParseIntegerTest, OtherTextIsRefused) {
  EXPECT_THAT(ParseInteger("9223372036854775808"),
              Refused("does not fit 64 bits"));
  for (const char* text : {"", "x", "1.5", "1 ", " 1", "-", "+1", "1e3"}) {
    EXPECT_THAT(ParseInteger(text), Refused("is not a whole number")) << text;
  }
}

TEST(ParseFloatTest, DecimalNumbers) {
  EXPECT_THAT(ParseFloat("0"), IsOkAndHolds(0.0f));
  EXPECT_THAT(ParseFloat("+1"), IsOkAndHolds(1.0f));
  EXPECT_THAT(ParseFloat("-2.5e1"), IsOkAndHolds(-25.0f));
  EXPECT_THAT(ParseFloat(".5"), IsOkAndHolds(0.5f));
}

TEST(ParseFloatTest, OtherTextIsRefused) {
  for (const char* text :
       {"", "+", "-", "+-1", "1 ", " 1", "1x", "0x10", "a"}) {
    EXPECT_THAT(ParseFloat(text), Refused("is not a number")) << text;
  }
  for (const char* text : {"inf", "-inf", "nan", "+infinity"}) {
    EXPECT_THAT(ParseFloat(text), Refused("is not finite")) << text;
  }
  EXPECT_THAT(ParseFloat("1e39"), Refused("out of the range of floats"));
}

}  // namespace
}  // namespace hawser::data
