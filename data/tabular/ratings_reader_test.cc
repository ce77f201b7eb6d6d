#include "data/tabular/ratings_reader.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "data/tabular/feature_key.h"
#include "data/tabular/samples.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Samples> Read(std::string_view text,
                             const std::string& separator = "") {
  ASSIGN_OR_RETURN(
      const auto reader,
      RatingsReader::Open(WriteTextFile("ratings", text), separator));
  return ReadSamples(*reader);
}

auto Refused(const char* error) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error));
}

TEST(RatingsReaderTest, AnySeparator) {
  for (const char* text :
       {"1,10,4.5,978300760\n2,11,3,978302109\n",
        "userId,movieId,rating,timestamp\n1,10,4.5,97\n2,11,3,98\n",
        "1::10::4.5::978300760\n2::11::3::978302109\n",
        "1\t10\t4.5\t881250949\n2\t11\t3\t891717742\n", "1;10;4.5\n2;11;3\n",
        "1 10 4.5\n\n2 11 3\n", "1|10|4.5\r\n2|11|3\r\n"}) {
    const auto samples = Read(text);
    ASSERT_THAT(samples, IsOk()) << text;
    EXPECT_THAT(samples->labels, ElementsAre(4.5, 3)) << text;
    EXPECT_THAT(samples->keys, ElementsAre(1, 10, 2, 11)) << text;
    EXPECT_THAT(samples->values, ElementsAre(1, 1, 1, 1)) << text;
  }
}

TEST(RatingsReaderTest, AGivenSeparator) {
  const auto samples = Read("a@x,item 1,2\n", ",");
  ASSERT_THAT(samples, IsOk());
  EXPECT_THAT(samples->keys,
              ElementsAre(static_cast<int64_t>(FeatureKey("user", "a@x")),
                          static_cast<int64_t>(FeatureKey("item", "item 1"))));
}

TEST(RatingsReaderTest, TextsAreHashedByField) {
  const auto samples = Read("same,same,1\n");
  ASSERT_THAT(samples, IsOk());
  EXPECT_NE(samples->keys[0], samples->keys[1]);
}

TEST(RatingsReaderTest, BadLinesAreNamed) {
  EXPECT_THAT(Read("1,2,3\n1,2\n"),
              Refused("ratings:2: the line has 2 fields separated by \",\""));
  EXPECT_THAT(Read("1,2,3,4,5\n"), Refused("the line has 5 fields"));
  EXPECT_THAT(Read("1,2,3\n1,2,x\n"),
              Refused("ratings:2: rating: \"x\" is not a number"));
  EXPECT_THAT(Read("1,2,3\n1,2,\n"), Refused("rating: \"\" is not a number"));
  EXPECT_THAT(Read("1,2,3\n1,2,nan\n"), Refused("rating: \"nan\" is not fin"));
  EXPECT_THAT(Read("1,2,3,soon\n"), Refused("ratings:1: timestamp: \"soon\""));
  EXPECT_THAT(Read("1,2,3\n,2,3\n"), Refused("ratings:2: user: is missing"));
  EXPECT_THAT(Read("1,2,3\n1,,3\n"), Refused("ratings:2: item: is missing"));
  EXPECT_THAT(Read("18446744073709551616,2,3\n"),
              Refused("user: \"18446744073709551616\" does not fit 64 bits"));
  EXPECT_THAT(Read("12\n"), Refused("ratings:1: \"12\" is not a line user"));
}

TEST(RatingsReaderTest, AnEmptyFileHasNoSamples) {
  for (const char* text : {"", "\n", "user,item,rating\n"}) {
    const auto samples = Read(text);
    ASSERT_THAT(samples, IsOk());
    EXPECT_EQ(samples->size(), 0);
  }
}

}  // namespace
}  // namespace hawser::data
