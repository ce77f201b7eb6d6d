#include "data/tabular/libsvm_reader.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "data/tabular/samples.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Samples> Read(std::string_view text, int64_t num_keys) {
  ASSIGN_OR_RETURN(
      const auto reader,
      LibsvmReader::Open(WriteTextFile("samples.libsvm", text), num_keys));
  return ReadSamples(*reader);
}

auto Refused(const char* error) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error));
}

TEST(LibsvmReaderTest, LabelsKeysAndValues) {
  const auto samples = Read(
      "1 3:1 9:0.5\n# A comment.\n\n-1\t4:-2\t5:1 # End.\n+1 1:1 2:1\n0 "
      "18446744073709551615:1 0:1\n",
      2);
  ASSERT_THAT(samples, IsOk());
  EXPECT_THAT(samples->labels, ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(samples->keys, ElementsAre(3, 9, 4, 5, 1, 2, -1, 0));
  EXPECT_THAT(samples->values, ElementsAre(1, 0.5, -2, 1, 1, 1, 1, 1));
  EXPECT_THAT(samples->dense, ElementsAre());
}

TEST(LibsvmReaderTest, AShortSampleRepeatsItsFirstKeyWithTheValueZero) {
  const auto samples = Read("1 7:2\n0\n", 3);
  ASSERT_THAT(samples, IsOk());
  EXPECT_THAT(samples->keys, ElementsAre(7, 7, 7, 0, 0, 0));
  EXPECT_THAT(samples->values, ElementsAre(2, 0, 0, 0, 0, 0));
}

TEST(LibsvmReaderTest, BadLinesAreNamed) {
  EXPECT_THAT(Read("1 1:1\n2 1:1\n", 1),
              Refused("samples.libsvm:2: the label \"2\" is not 0, 1 or -1"));
  EXPECT_THAT(Read("x 1:1\n", 1), Refused("the label \"x\""));
  EXPECT_THAT(Read("1 1\n", 1), Refused("feature \"1\": must be key:value"));
  EXPECT_THAT(Read("1 a:1\n", 1), Refused("feature \"a:1\": \"a\" is not a"));
  EXPECT_THAT(Read("1 -1:1\n", 1), Refused("\"-1\" is not a number"));
  EXPECT_THAT(Read("1 18446744073709551616:1\n", 1),
              Refused("does not fit 64 bits"));
  EXPECT_THAT(Read("1 1:\n", 1), Refused("\"\" is not a number"));
  EXPECT_THAT(Read("1 1:inf\n", 1), Refused("is not finite"));
  EXPECT_THAT(Read("1 1:1 2:1\n", 1),
              Refused("samples.libsvm:1: the line has more than 1 features"));
}

TEST(LibsvmWidthTest, IsThatOfTheLongestLine) {
  EXPECT_THAT(LibsvmWidth(WriteTextFile("w", "1 1:1\n0 1:1 2:1 3:1\n1\n")),
              IsOkAndHolds(3));
  EXPECT_THAT(LibsvmWidth(WriteTextFile("w", "")), IsOkAndHolds(0));
}

TEST(LibsvmWidthTest, IsBounded) {
  std::string line = "1";
  for (int64_t i = 0; i <= kMaxLibsvmFeatures; ++i) {
    absl::StrAppend(&line, " ", i, ":1");
  }
  EXPECT_THAT(LibsvmWidth(WriteTextFile("w", line)),
              Refused("w:1: the line has more than 4096 features"));
  EXPECT_THAT(LibsvmReader::Open("w", kMaxLibsvmFeatures + 1),
              Refused("must be 0 to 4096"));
}

}  // namespace
}  // namespace hawser::data
