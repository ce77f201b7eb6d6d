#include "launch/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

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

SupervisorOptions Contained() {
  SupervisorOptions options = Quick();
  options.contain_descendants = true;
  return options;
}

// The descriptor that children hold shows by end of file that all have ended.
class Leash {
 public:
  Leash() { EXPECT_EQ(pipe(ends_), 0); }
  ~Leash() {
    Release();
    close(ends_[0]);
  }
  int held() const { return ends_[1]; }
  // Closes the held end in this process.
  void Release() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  // The next bytes; empty at the end of the file.
  std::string Read() const {
    pollfd readable{ends_[0], POLLIN, 0};
    if (poll(&readable, 1, 30'000) != 1) return "a process is still alive";
    char text[256];
    const ssize_t got = read(ends_[0], text, sizeof(text));
    return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
  }

 private:
  int ends_[2];
};

TEST(SupervisorTest, EnvironmentAndOutputOfAChildAreThoseOfItsSpec) {
  setenv("REPLACED", "old", 1);
  setenv("KEPT", "kept", 1);
  Leash output;
  ChildSpec child = Shell("a", "echo $REPLACED $KEPT; echo $ADDED >&2");
  child.environment = {{"REPLACED", "new"}, {"ADDED", "added"}};
  child.output_fd = child.error_fd = output.held();
  auto job = Supervisor::Start({child});
  ASSERT_THAT(job, IsOk());
  ASSERT_THAT((*job)->Wait(), IsOk());
  output.Release();
  EXPECT_EQ(output.Read(), "new kept\nadded\n");
}

TEST(SupervisorTest, FailureHasTheChildAndItsExitCode) {
  std::vector<std::string> told;
  SupervisorOptions options = Quick();
  options.on_failure = [&told](const ChildFailure& failure) {
    told.push_back(failure.description);
  };
  auto job = Supervisor::Start(
      {Shell("a", "exec sleep 600"), Shell("b", "kill -KILL $$")}, options);
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(), StatusIs(absl::StatusCode::kAborted));
  ASSERT_TRUE((*job)->failure().has_value());
  EXPECT_EQ((*job)->failure()->child, 1u);
  EXPECT_EQ((*job)->failure()->exit_code, 128 + SIGKILL);
  EXPECT_EQ(told,
            std::vector<std::string>{"b was killed by signal 9 (Killed)"});
}

TEST(SupervisorTest, StopFromAnotherThreadEndsTheJob) {
  Supervisor::BlockSignals();
  auto job = Supervisor::Start({Shell("a", "exec sleep 600")}, Quick());
  ASSERT_THAT(job, IsOk());
  std::thread stopper([&job] { (*job)->Stop(); });
  EXPECT_THAT((*job)->Wait(), StatusIs(absl::StatusCode::kCancelled));
  stopper.join();
  EXPECT_EQ((*job)->stop_signal(), 0);
  EXPECT_FALSE((*job)->failure().has_value());
}

TEST(SupervisorTest, ContainedChildrenGetTheSignalOfTheSupervisor) {
  Leash output;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // A shell cannot trap a signal that it inherits as ignored.
    std::signal(number, SIG_DFL);
    Supervisor::BlockSignals();
    ChildSpec child = Shell(
        "a", absl::StrCat("trap 'echo INT; exit 1' INT; ",
                          "trap 'echo TERM; exit 1' TERM; ",
                          "trap 'echo HUP; exit 1' HUP; sleep 600 & kill -",
                          number, " ", getpid(), "; wait"));
    child.output_fd = output.held();
    SupervisorOptions options = Contained();
    options.kill_delay = absl::Minutes(1);
    auto job = Supervisor::Start({child}, options);
    ASSERT_THAT(job, IsOk());
    EXPECT_THAT((*job)->Wait(), StatusIs(absl::StatusCode::kCancelled));
    EXPECT_EQ((*job)->stop_signal(), number);
    EXPECT_EQ(output.Read(), number == SIGINT    ? "INT\n"
                             : number == SIGTERM ? "TERM\n"
                                                 : "HUP\n");
  }
}

TEST(SupervisorTest, DescendantsEndWithTheirChild) {
  // A process of the child's group, and one that has left it.
  Leash leash;
  const std::string hold = absl::StrCat("sleep 600 <&", leash.held(), " ");
  auto job = Supervisor::Start(
      {Shell("a",
             absl::StrCat("(", hold, "&) ; (setsid ", hold, "&) ; exit 0"))},
      Contained());
  ASSERT_THAT(job, IsOk());
  EXPECT_THAT((*job)->Wait(), IsOk());
  leash.Release();
  EXPECT_EQ(leash.Read(), "");
}

TEST(SupervisorTest, DescendantsDieWithTheirKilledSupervisor) {
  Leash leash;
  const pid_t between = fork();
  if (between == 0) {
    auto job = Supervisor::Start(
        {Shell("a",
               absl::StrCat("sleep 600 & echo up >&", leash.held(), "; wait"))},
        Contained());
    leash.Release();
    if (job.ok()) (*job)->Wait().IgnoreError();
    _exit(0);
  }
  leash.Release();
  ASSERT_EQ(leash.Read(), "up\n");
  kill(between, SIGKILL);
  ASSERT_EQ(waitpid(between, nullptr, 0), between);
  EXPECT_EQ(leash.Read(), "");
}

}  // namespace
}  // namespace hawser::launch
