#include "launch/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::HasSubstr;

ChildSpec Shell(const std::string& name, const std::string& script) {
  return {name, {"/bin/sh", "-c", script}};
}

SupervisorOptions Quick() {
  return {.notice_period = absl::Milliseconds(50),
          .kill_delay = absl::Milliseconds(200)};
}

TEST(SupervisorTest, AllChildrenSucceedingIsOk) {
  auto job = Supervisor::Start({Shell("a", "exit 0"), Shell("b", "exit 0")});
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(), IsOk());
}

TEST(SupervisorTest, NoChildrenIsOk) {
  auto job = Supervisor::Start({});
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(), IsOk());
}

TEST(SupervisorTest, ExitCodeOfFirstFailureIsNamed) {
  auto job = Supervisor::Start({Shell("ps0", "exit 7")}, Quick());
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(), StatusIs(absl::StatusCode::kAborted,
                                       HasSubstr("ps0 exited with code 7")));
}

TEST(SupervisorTest, FailureStopsTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  auto job = Supervisor::Start(
      {Shell("ps0", "exec sleep 600"), Shell("trainer0", "kill -9 $$")},
      Quick());
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("trainer0 was killed by signal 9")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
}

TEST(SupervisorTest, ChildThatIgnoresTermIsKilled) {
  auto job = Supervisor::Start(
      {Shell("deaf", "trap '' TERM; while :; do sleep 600; done"),
       Shell("trainer0", "exit 1")},
      Quick());
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("trainer0")));
}

TEST(SupervisorTest, MissingExecutableIsNamedAndEarlierChildrenEnd) {
  EXPECT_THAT(Supervisor::Start({Shell("ps0", "exec sleep 600"),
                                 {"trainer0", {"/no/such/program"}}}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("cannot start trainer0: cannot run "
                                 "/no/such/program")));
  // No child is left: waiting for one fails at once.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(SupervisorTest, TermSignalStopsTheJob) {
  Supervisor::BlockSignals();
  auto job = Supervisor::Start({Shell("ps0", "exec sleep 600")}, Quick());
  ASSERT_THAT(job, IsOk());
  kill(getpid(), SIGTERM);
  EXPECT_THAT((*job)->Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped by")));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(SupervisorTest, StoppedChildrenAreNoFailureOfAStoppedJob) {
  Supervisor::BlockSignals();
  // Each child ends as if it had received SIGINT from the terminal too.
  auto job = Supervisor::Start(
      {Shell("ps0", "exit 130"), Shell("ps1", "kill -INT $$"),
       Shell("ps2", absl::StrCat("kill -INT ", getpid(), "; exec sleep 600"))},
      Quick());
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("Interrupt")));
  EXPECT_EQ((*job)->stop_signal(), SIGINT);
}

TEST(SupervisorTest, CauseIsNamedInsteadOfItsConsequences) {
  SupervisorOptions options = Quick();
  options.notice_period = absl::Minutes(1);
  options.consequence_exit_code = 3;
  // The cause ends when its input does, which is after the other child.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto job = Supervisor::Start(
      {Shell("follower", "exit 3"),
       Shell("cause", absl::StrCat("exec ", ends[1], ">&-; cat <&", ends[0],
                                   "; exit 1"))},
      options);
  ASSERT_THAT(job, IsOk());
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(info.si_status, 3);
  close(ends[1]);
  EXPECT_THAT((*job)->Wait(), StatusIs(absl::StatusCode::kAborted,
                                       HasSubstr("cause exited with code 1")));
  close(ends[0]);
  EXPECT_EQ((*job)->stop_signal(), 0);
}

TEST(SupervisorTest, ChildrenDieWithTheirSupervisor) {
  // An intermediate process supervises a child and is killed. The child holds
  // the write end of the pipe, so end of file shows that it has died.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t between = fork();
  if (between == 0) {
    close(ends[0]);
    auto job = Supervisor::Start({Shell(
        "orphan", absl::StrCat("echo up >&", ends[1], "; exec sleep 60"))});
    close(ends[1]);
    if (job.ok()) (*job)->Wait().IgnoreError();
    _exit(0);
  }
  close(ends[1]);
  char text[3];
  ASSERT_EQ(read(ends[0], text, sizeof(text)), 3);
  kill(between, SIGKILL);
  ASSERT_EQ(waitpid(between, nullptr, 0), between);
  pollfd end_of_file{ends[0], POLLIN, 0};
  ASSERT_EQ(poll(&end_of_file, 1, 30'000), 1) << "the child is still alive";
  EXPECT_EQ(read(ends[0], text, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace hawser::launch
