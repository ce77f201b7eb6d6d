#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/testing/shell_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/program.h"

namespace hawser::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr char kHawser[] = "cli/hawser";

TEST(RunProgramTest, ProcessesHaveTheEnvironmentOfTheirRank) {
  const auto program = RunShell(
      {"--standalone", "--nproc_per_node", "2", "--rdzv-id=j"},
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK "
      "$ROLE_NAME $MASTER_ADDR $TORCHELASTIC_RUN_ID $HAWSER_INIT");
  EXPECT_EQ(program->Wait(), 0) << program->Errors();
  EXPECT_THAT(
      Lines(program->Output()),
      UnorderedElementsAre("[rank 0] 0 0 2 2 0 default 127.0.0.1 j env://",
                           "[rank 1] 1 1 2 2 0 default 127.0.0.1 j env://"));
  EXPECT_EQ(program->Errors(), "");
}

TEST(RunProgramTest, RolesAreRanksAndPrefixes) {
  const auto program = RunShell({"--standalone", "--role=server=1,trainer=2"},
                                "echo $RANK $ROLE_RANK/$ROLE_WORLD_SIZE >&2");
  EXPECT_EQ(program->Wait(), 0);
  EXPECT_EQ(program->Output(), "");
  EXPECT_THAT(Lines(program->Errors()),
              UnorderedElementsAre("[server0] 0 0/1", "[trainer0] 1 0/2",
                                   "[trainer1] 2 1/2"));
}

TEST(RunProgramTest, ArgumentsReachTheProgramUnchanged) {
  tests::Program program(kHawser, {"run", "--standalone", "printf", "%s|", "-1",
                                   "[1]", "--nproc_per_node=2", "--", "a b"});
  EXPECT_EQ(program.Wait(), 0) << program.Errors();
  EXPECT_EQ(program.Output(), "[rank 0] -1|[1]|--nproc_per_node=2|--|a b|\n");
}

TEST(RunProgramTest, LogsLieWhereTorchrunHasThem) {
  const std::string directory = NewDirectory();
  const auto program =
      RunShell({"--standalone", "--nproc-per-node=2", "--rdzv-id=j",
                "--log-dir=" + directory, "--redirects=0:3", "--tee=1:1"},
               "echo out$RANK; echo err$RANK >&2");
  EXPECT_EQ(program->Wait(), 0) << program->Errors();
  std::vector<std::filesystem::path> runs(
      std::filesystem::directory_iterator(directory), {});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].filename().string().substr(0, 2), "j_");
  const std::filesystem::path attempt = runs[0] / "attempt_0";
  EXPECT_EQ(Content(attempt / "0" / "stdout.log"), "out0\n");
  EXPECT_EQ(Content(attempt / "0" / "stderr.log"), "err0\n");
  EXPECT_EQ(Content(attempt / "1" / "stdout.log"), "out1\n");
  EXPECT_FALSE(std::filesystem::exists(attempt / "1" / "stderr.log"));
  EXPECT_EQ(program->Output(), "[rank 1] out1\n");
  EXPECT_THAT(program->Errors(),
              AllOf(HasSubstr("[rank 1] err1\n"), Not(HasSubstr("err0")),
                    HasSubstr("hawser: logs are in " + runs[0].string())));
}

TEST(RunProgramTest, FirstFailureIsToldWithItsLastLinesAndEndsTheOthers) {
  const auto program =
      RunShell({"--standalone", "--nproc-per-node=2"},
               "if [ $RANK = 1 ]; then echo cause; exit 7; fi; "
               "sleep 6001 & exec sleep 6001");
  EXPECT_EQ(program->Wait(std::chrono::seconds(30)), 7);
  EXPECT_THAT(program->Errors(),
              AllOf(HasSubstr("hawser: rank 1 (local rank 1) on host "),
                    HasSubstr(" exited with code 7; its last lines of output:"
                              "\n    cause\n")));
  EXPECT_TRUE(ProcessesWith(std::string("sleep\0"
                                        "6001",
                                        10))
                  .empty());
}

TEST(RunProgramTest, SignalOfAProcessIsToldAndIsTheExitCode) {
  const auto program = RunShell({"--standalone"}, "kill -SEGV $$");
  EXPECT_EQ(program->Wait(), 128 + SIGSEGV);
  EXPECT_THAT(program->Errors(),
              HasSubstr("was killed by signal 11 (Segmentation fault)"));
}

TEST(RunProgramTest, SignalsArePassedOn) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(number, SIG_DFL);
    const auto program =
        RunShell({"--standalone", "--kill-delay=60"},
                 "trap 'echo INT; exit 1' INT; trap 'echo TERM; exit 1' TERM; "
                 "trap 'echo HUP; exit 1' HUP; sleep 600 & echo up >&2; wait");
    ASSERT_TRUE(program->WaitForError("up"));
    kill(program->pid(), number);
    EXPECT_EQ(program->Wait(std::chrono::seconds(30)), 128 + number);
    EXPECT_EQ(program->Output(), number == SIGINT    ? "[rank 0] INT\n"
                                 : number == SIGTERM ? "[rank 0] TERM\n"
                                                     : "[rank 0] HUP\n");
    EXPECT_THAT(program->Errors(), HasSubstr("was stopped by signal"));
  }
}

TEST(RunProgramTest, KilledLauncherLeavesNoProcess) {
  // Killed at once, while processes run, and when one has ended.
  for (const char* moment : {"", "up", "has ended"}) {
    const std::string marker =
        absl::StrCat("left-over-", getpid(), "-", std::string(moment).size());
    const auto program = RunShell(
        {"--standalone", "--nproc-per-node=3"},
        absl::StrCat(": ", marker, "; sh -c 'sleep 600; : ", marker,
                     "' & if [ $RANK = 1 ]; then echo has ended >&2; exit 0; "
                     "fi; echo up >&2; wait"));
    if (*moment != '\0') {
      ASSERT_TRUE(program->WaitForError(moment));
    }
    kill(program->pid(), SIGKILL);
    program->Wait();
    EXPECT_TRUE(tests::WaitUntilGone(ProcessesWith(marker)));
    EXPECT_TRUE(ProcessesWith(marker).empty());
  }
}

TEST(RunProgramTest, FailedJobRestartsWithANewMasterPort) {
  const auto program = RunShell(
      {"--standalone", "--nproc-per-node=2", "--max-restarts=2"},
      "echo $RANK $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS "
      "$MASTER_PORT; [ $RANK = 0 -o $TORCHELASTIC_RESTART_COUNT = 2 ]");
  EXPECT_EQ(program->Wait(), 0) << program->Errors();
  std::vector<std::string> ports;
  for (int count = 0; count < 3; ++count) {
    std::vector<std::string> of_attempt;
    for (const std::string& line : Lines(program->Output())) {
      const size_t at = line.find(absl::StrCat(" ", count, "/2 "));
      if (at != std::string::npos) of_attempt.push_back(line.substr(at + 5));
    }
    // Both processes have the same port, unless rank 0 was stopped before.
    ASSERT_GE(of_attempt.size(), 1u) << program->Output();
    if (of_attempt.size() == 2) {
      EXPECT_EQ(of_attempt[0], of_attempt[1]);
    }
    ports.push_back(of_attempt[0]);
  }
  EXPECT_NE(ports[0], ports[1]);
  EXPECT_NE(ports[1], ports[2]);
  EXPECT_THAT(program->Errors(), AllOf(HasSubstr("restart 1 of at most 2"),
                                       HasSubstr("restart 2 of at most 2")));
}

TEST(RunProgramTest, RestartsEndAtTheirLimit) {
  const auto program = RunShell({"--standalone", "--max-restarts=1"}, "exit 9");
  EXPECT_EQ(program->Wait(), 9);
  EXPECT_THAT(program->Errors(), AllOf(HasSubstr("restart 1 of at most 1"),
                                       Not(HasSubstr("restart 2"))));
}

TEST(RunProgramTest, ProgramThatCannotStartIsNamed) {
  tests::Program missing(
      kHawser, {"run", "--standalone", "--max-restarts=3", "/no/such/program"});
  EXPECT_EQ(missing.Wait(), 127);
  EXPECT_THAT(missing.Errors(),
              AllOf(HasSubstr("cannot run /no/such/program: No such file"),
                    Not(HasSubstr("restart"))));
  tests::Program not_executable(kHawser,
                                {"run", "--standalone", "/etc/passwd"});
  EXPECT_EQ(not_executable.Wait(), 126);
  EXPECT_THAT(not_executable.Errors(), HasSubstr("cannot run /etc/passwd"));
}

TEST(RunProgramTest, TakenPortIsNamedWithTheRemedy) {
  const Port taken(/*listens=*/true);
  const auto program = RunShell(
      {absl::StrCat("--master-port=", taken.number())}, "echo started");
  EXPECT_EQ(program->Wait(), 2);
  EXPECT_EQ(program->Output(), "");
  EXPECT_THAT(program->Errors(),
              AllOf(HasSubstr(absl::StrCat("port ", taken.number(),
                                           " of 127.0.0.1 is taken")),
                    HasSubstr("--standalone")));
  const auto meeting =
      RunShell({"--nnodes=2", "--node-rank=0",
                absl::StrCat("--rdzv-endpoint=127.0.0.1:", taken.number())},
               "echo started");
  EXPECT_EQ(meeting->Wait(), 2);
  EXPECT_THAT(meeting->Errors(),
              AllOf(HasSubstr("the port at which launchers meet is taken"),
                    HasSubstr(absl::StrCat(taken.number()))));
}

TEST(RunProgramTest, WrongFlagExitsWithOne) {
  const auto elastic = RunShell({"--nnodes=1:4"}, "echo started");
  EXPECT_EQ(elastic->Wait(), 1);
  EXPECT_THAT(elastic->Errors(), HasSubstr("--nnodes=1:4"));
  const auto unknown = RunShell({"--nproc=2"}, "echo started");
  EXPECT_EQ(unknown->Wait(), 1);
  EXPECT_THAT(unknown->Errors(), HasSubstr("--nproc"));
  tests::Program nothing(kHawser, {"run", "--standalone"});
  EXPECT_EQ(nothing.Wait(), 1);
  EXPECT_THAT(nothing.Errors(), HasSubstr("the program is missing"));
}

}  // namespace
}  // namespace hawser::cli
