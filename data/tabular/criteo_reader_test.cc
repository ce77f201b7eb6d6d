#include "data/tabular/criteo_reader.h"

#include <cmath>
#include <cstdint>
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

absl::StatusOr<Samples> Read(std::string_view text) {
  ASSIGN_OR_RETURN(const auto reader,
                   CriteoReader::Open(WriteTextFile("clicks.csv", text)));
  return ReadSamples(*reader);
}

auto Refused(const char* error) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error));
}

int64_t Key(std::string_view field, std::string_view value) {
  return static_cast<int64_t>(FeatureKey(field, value));
}

TEST(CriteoReaderTest, ColumnsInAnyOrder) {
  const auto samples = Read("C1,label,I1,C2,I2\nx,1,3,y,\n\"x\",0,-2,,0.5\n");
  ASSERT_THAT(samples, IsOk());
  EXPECT_THAT(samples->labels, ElementsAre(1, 0));
  EXPECT_THAT(samples->dense,
              ElementsAre(std::log1p(3.0f), 0, 0, std::log1p(0.5f)));
  EXPECT_THAT(samples->keys, ElementsAre(Key("C1", "x"), Key("C2", "y"),
                                         Key("C1", "x"), Key("C2", "")));
  EXPECT_THAT(samples->values, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(samples->ideal, ElementsAre());
}

TEST(CriteoReaderTest, WidthIsThatOfTheHeader) {
  const auto reader = CriteoReader::Open(
      WriteTextFile("clicks.csv", "label,I1,I2,I3,C1,C26\n"));
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ((*reader)->width(), (SampleWidth{.dense = 3, .keys = 2}));
}

TEST(CriteoReaderTest, BadHeaders) {
  EXPECT_THAT(Read("I1,C1\n"), Refused("no column \"label\""));
  EXPECT_THAT(Read("label,I1,age\n"), Refused("column 3 is \"age\""));
  EXPECT_THAT(Read("label,I\n"), Refused("column 2 is \"I\""));
  EXPECT_THAT(Read("0,1,68fd\n"), Refused("column 1 is \"0\""));
}

TEST(CriteoReaderTest, BadFieldsAreNamed) {
  EXPECT_THAT(Read("label,I1\n0,1\n2,1\n"),
              Refused("clicks.csv:3: column 1 (\"label\"): \"2\" is not 0 or "
                      "1"));
  EXPECT_THAT(Read("label,I1\n,1\n"), Refused("\"\" is not 0 or 1"));
  EXPECT_THAT(Read("label,I1\n0,x\n"),
              Refused("clicks.csv:2: column 2 (\"I1\"): \"x\" is not a "
                      "number"));
  EXPECT_THAT(Read("label,I1\n0,nan\n"), Refused("is not finite"));
  EXPECT_THAT(Read("label,I1,C1\n0,1\n"), Refused("the line has 2 fields"));
}

}  // namespace
}  // namespace hawser::data
