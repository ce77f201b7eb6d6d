#include "benchmarks/child_process.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::benchmarks {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;

TEST(ChildProcessTest, LinesAreExchanged) {
  const auto child = ChildProcess::Start(
      {"/bin/sh", "-c", "while read x; do echo \"got $x\"; done"});
  ASSERT_THAT(child, IsOk());
  ASSERT_THAT((*child)->Send("a b"), IsOk());
  ASSERT_THAT((*child)->Send("c"), IsOk());
  EXPECT_THAT((*child)->Receive(), IsOkAndHolds("got a b"));
  EXPECT_THAT((*child)->Receive(), IsOkAndHolds("got c"));
}

TEST(ChildProcessTest, LineThatIsLateIsReadLater) {
  const auto child = ChildProcess::Start(
      {"/bin/sh", "-c", "printf half; read x; echo ' all'"});
  ASSERT_THAT(child, IsOk());
  EXPECT_THAT((*child)->Receive(absl::Now() + absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_THAT((*child)->Send(""), IsOk());
  EXPECT_THAT((*child)->Receive(absl::Now() + absl::Minutes(1)),
              IsOkAndHolds("half all"));
}

TEST(ChildProcessTest, EndedProcessIsReported) {
  const auto child = ChildProcess::Start({"/bin/sh", "-c", "echo last"});
  ASSERT_THAT(child, IsOk());
  EXPECT_THAT((*child)->Receive(), IsOkAndHolds("last"));
  EXPECT_THAT((*child)->Receive(), StatusIs(absl::StatusCode::kUnavailable));
  const auto missing = ChildProcess::Start({"/no/such/program"});
  ASSERT_THAT(missing, IsOk());
  EXPECT_THAT((*missing)->Receive(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(ChildProcessTest, DestructorKillsTheGroup) {
  auto child = ChildProcess::Start(
      {"/bin/sh", "-c", "sleep 1000 & echo $!; read x; read y"});
  ASSERT_THAT(child, IsOk());
  EXPECT_EQ(getpgid((*child)->pid()), (*child)->pid());
  const absl::StatusOr<std::string> grandchild = (*child)->Receive();
  ASSERT_THAT(grandchild, IsOk());
  const pid_t pid = std::stoi(*grandchild);
  ASSERT_EQ(getpgid(pid), (*child)->pid());
  child->reset();
  // Its new parent may not reap it.
  const auto state = [pid] {
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::string number, name, letter;
    stat >> number >> name >> letter;
    return letter;
  };
  while (!state().empty() && state() != "Z") std::this_thread::yield();
}

}  // namespace
}  // namespace hawser::benchmarks
