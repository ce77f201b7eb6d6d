#include "examples/user_type/interval.h"

#include <fstream>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using hawser::async::IsOk;
using hawser::async::StatusIs;
using hawser::rpc::Decoder;
using hawser::rpc::Encoder;
using hawser::rpc::WireTraits;
using testing::HasSubstr;

// Encodes `value` and decodes the result, as a call does.
absl::StatusOr<Interval> Travel(const Interval& value) {
  Encoder encoder;
  EXPECT_THAT(WireTraits<Interval>::Encode(encoder, value), IsOk());
  const std::string values = encoder.TakeValues();
  Decoder decoder(nullptr, nullptr, values, {});
  return WireTraits<Interval>::Decode(decoder);
}

TEST(IntervalTest, RoundTripsUnlessInvalid) {
  const absl::StatusOr<Interval> same = Travel({-1, 2.5});
  ASSERT_THAT(same, IsOk());
  EXPECT_EQ(same->low, -1);
  EXPECT_EQ(same->high, 2.5);
  EXPECT_THAT(Travel({2, 1}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(kWiden.Signature(),
            "example.Interval(example.Interval, double) where "
            "example.Interval{low: double, high: double}");
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The document shows the code of interval.h.
TEST(IntervalTest, DocumentShowsTheCode) {
  std::string shown;
  for (const std::string& line : LinesOf("docs/rpc/wire_format.md"))
    shown += line + "\n";
  std::string example;
  bool within = false;
  for (const std::string& line : LinesOf("examples/user_type/interval.h")) {
    within |= line == "template <>";
    if (within) example += "    " + line + "\n";
    if (within && line == "};") break;
  }
  EXPECT_THAT(example, HasSubstr("kFields"));
  EXPECT_NE(shown.find(example), std::string::npos) << example;
}

}  // namespace
