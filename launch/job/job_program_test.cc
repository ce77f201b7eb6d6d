#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/program.h"

namespace hawser::launch {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class CountJob : public tests::Program {
 public:
  explicit CountJob(std::vector<std::string> flags)
      : Program("launch/job/count_job", Patient(std::move(flags))) {}

 private:
  // For machines that may stall for seconds.
  static std::vector<std::string> Patient(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "--silent_limit=20s");
    return flags;
  }
};

TEST(JobProgramTest, ProcessesOfTheJobRunOnThisMachine) {
  CountJob job({"--counters=3"});
  EXPECT_EQ(job.Wait(), 0) << job.Errors();
  // Each gets --more=1.
  EXPECT_EQ(job.Output(), "33\n");
  EXPECT_TRUE(job.Processes().empty());
}

// The job's own launcher is not used.
TEST(JobProgramTest, ProcessesOfALauncherFormTheJob) {
  for (const std::string processes :
       {"--nproc-per-node=3", "--role=counter=3"}) {
    tests::Program job(
        "cli/hawser", {"run", "--standalone", processes, "launch/job/count_job",
                       "--silent_limit=20s", "--counters=3"});
    EXPECT_EQ(job.Wait(), 0) << job.Errors();
    EXPECT_THAT(job.Output(), HasSubstr("30\n"));
    EXPECT_TRUE(job.Processes().empty());
  }
}

TEST(JobProgramTest, LauncherAndFlagsMustAgree) {
  tests::Program job("cli/hawser", {"run", "--standalone", "--nproc-per-node=2",
                                    "launch/job/count_job", "--counters=3"});
  EXPECT_EQ(job.Wait(), 1);
  EXPECT_THAT(job.Errors(),
              HasSubstr("2 processes, but the job has counter=3"));
}

TEST(JobProgramTest, ProgramWithoutRolesRunsAlone) {
  CountJob job({"--counters=0"});
  EXPECT_EQ(job.Wait(), 0) << job.Errors();
  EXPECT_EQ(job.Output(), "10\n");
}

TEST(JobProgramTest, WrongInputsAreReportedOnce) {
  for (const std::string flag :
       {"--count=13", "--role=dog", "--silent_limit=0"}) {
    CountJob job({flag});
    EXPECT_EQ(job.Wait(), 1);
    EXPECT_THAT(job.Errors(), HasSubstr(flag));
    const std::string errors = job.Errors();
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  }
}

TEST(JobProgramTest, HelpShowsFlagsAndExitCodes) {
  CountJob job({"--help"});
  EXPECT_EQ(job.Wait(), 0);
  EXPECT_THAT(job.Output(),
              AllOf(HasSubstr("\n  --counters=2\n"),
                    HasSubstr("\n  --silent_limit=3s\n"),
                    HasSubstr("143 after"), Not(HasSubstr("--flagfile"))));
}

TEST(JobProgramTest, DeathOfAProcessEndsTheJobAndIsNamed) {
  CountJob job({"--count=-1", "--notice_period=60s"});
  ASSERT_TRUE(job.WaitForError("counting")) << job.Errors();
  const auto victims = job.Processes("--role=counter --index=1");
  ASSERT_EQ(victims.size(), 1u);
  ASSERT_EQ(kill(victims[0], SIGKILL), 0);
  EXPECT_EQ(job.Wait(), 1);
  EXPECT_THAT(job.Errors(),
              AllOf(HasSubstr("count_job counter0: lost worker counter1"),
                    EndsWith("count_job: counter1 was killed by signal 9 "
                             "(Killed)\n")));
}

TEST(JobProgramTest, SignalStopsTheJob) {
  CountJob job({"--count=-1"});
  ASSERT_TRUE(job.WaitForError("counting")) << job.Errors();
  ASSERT_EQ(kill(job.pid(), SIGTERM), 0);
  EXPECT_EQ(job.Wait(), 128 + SIGTERM);
  EXPECT_THAT(job.Errors(), EndsWith("count_job: stopped by Terminated\n"));
  EXPECT_TRUE(job.Processes().empty());
}

}  // namespace
}  // namespace hawser::launch
