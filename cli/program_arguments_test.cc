#include "cli/program_arguments.h"

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProgramArguments Split(const std::vector<std::string>& arguments) {
  CLI::App hawser;
  CLI::App* run = hawser.add_subcommand("run");
  std::string number;
  bool standalone = false;
  run->add_option("--nproc-per-node", number);
  run->add_flag("--standalone", standalone);
  hawser.add_subcommand("list");
  return SplitAtProgram(*run, arguments);
}

TEST(ProgramArgumentsTest, ProgramBeginsAfterFlagsAndTheirValues) {
  const ProgramArguments split =
      Split({"run", "--nproc-per-node", "2", "--standalone", "./train",
             "--nproc-per-node", "-1", "[1]", "--", "a_b"});
  EXPECT_THAT(split.flags,
              ElementsAre("run", "--nproc-per-node", "2", "--standalone"));
  EXPECT_THAT(split.program, ElementsAre("./train", "--nproc-per-node", "-1",
                                         "[1]", "--", "a_b"));
}

TEST(ProgramArgumentsTest, UnderscoresOfFlagsBecomeDashes) {
  const ProgramArguments split =
      Split({"run", "--nproc_per_node=a_b", "--nproc_per_node", "c_d", "p_q"});
  EXPECT_THAT(split.flags, ElementsAre("run", "--nproc-per-node=a_b",
                                       "--nproc-per-node", "c_d"));
  EXPECT_THAT(split.program, ElementsAre("p_q"));
}

TEST(ProgramArgumentsTest, TwoDashesEndTheFlags) {
  EXPECT_THAT(Split({"run", "--standalone", "--", "-x", "y"}).program,
              ElementsAre("-x", "y"));
}

TEST(ProgramArgumentsTest, OtherCommandsHaveNoProgram) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{
           {}, {"list", "a_b"}, {"--version"}, {"nothing", "run"}}) {
    EXPECT_EQ(Split(arguments).flags, arguments);
    EXPECT_THAT(Split(arguments).program, IsEmpty());
  }
}

}  // namespace
}  // namespace hawser::cli
