#include "launch/job/usage.h"

#include <string>

#include "absl/flags/flag.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(int, usage_test_count, 3,
          "Number of things, of which there are some.");
ABSL_FLAG(std::string, usage_test_name, "", "Their name.");

namespace hawser::launch {
namespace {

TEST(UsageTest, ShowsTheFlagsOfTheGivenFilesInTheGivenWidth) {
  EXPECT_EQ(Usage({.summary = "Counts.",
                   .commands = {"count --usage_test_count=2"},
                   .results = {{"sum", "The sum of all."}},
                   .remarks = "The end."},
                  {"launch/job/usage_test.cc"}, 40),
            "Counts.\n"
            "\n"
            "  count --usage_test_count=2\n"
            "\n"
            "Flags with their default values:\n"
            "  --usage_test_count=3\n"
            "      Number of things, of which there\n"
            "      are some.\n"
            "  --usage_test_name=''\n"
            "      Their name.\n"
            "\n"
            "The result is one line of JSON on standard output:\n"
            "  sum\n"
            "      The sum of all.\n"
            "\n"
            "The end.\n");
}

}  // namespace
}  // namespace hawser::launch
