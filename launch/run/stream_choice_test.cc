#include "launch/run/stream_choice.h"

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::HasSubstr;
using Streams = StreamChoice::Streams;

TEST(StreamChoiceTest, OneNumberAppliesToAllProcesses) {
  const Streams expected[] = {
      {}, {.output = true}, {.error = true}, {.output = true, .error = true}};
  const char* const texts[] = {"0", "1", "2", "3"};
  for (int i = 0; i < 4; ++i) {
    const auto choice = ParseStreamChoice(texts[i]);
    ASSERT_THAT(choice, IsOk());
    EXPECT_EQ(choice->Of(0), expected[i]);
    EXPECT_EQ(choice->Of(7), expected[i]);
    EXPECT_EQ(choice->empty(), i == 0);
  }
}

TEST(StreamChoiceTest, ListAppliesToTheNamedProcessesOnly) {
  const auto choice = ParseStreamChoice("0:3,2:1,3:0");
  ASSERT_THAT(choice, IsOk());
  EXPECT_EQ(choice->Of(0), (Streams{.output = true, .error = true}));
  EXPECT_EQ(choice->Of(1), Streams());
  EXPECT_EQ(choice->Of(2), Streams{.output = true});
  EXPECT_FALSE(choice->empty());
  EXPECT_TRUE(ParseStreamChoice("3:0")->empty());
}

TEST(StreamChoiceTest, MalformedPartIsNamed) {
  for (const char* text : {"4", "", "x", "0:4", "1:2:3", "-1:3", "0:1,0:2"}) {
    EXPECT_THAT(ParseStreamChoice(text),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(ParseStreamChoice("0:1,1:9"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'1:9'")));
}

}  // namespace
}  // namespace hawser::launch
