#include "launch/job/job_member.h"

#include <atomic>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/job/testing/job_test_fixture.h"
#include "rpc/functions/function.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::HasSubstr;

inline constexpr rpc::Function<void()> kWait{"job_member_test.Wait"};

using JobMemberTest = JobTest;

TEST_F(JobMemberTest, FirstTrainerCountsTheSamplesOfAllAndEndsTheJob) {
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, [](JobMember& member) {
    EXPECT_EQ(member.AddSamples(30), 30);
    EXPECT_EQ(member.AddSamples(30), 60);
    EXPECT_THAT(member.FinishSamples(), async::IsOkAndHolds(60));
    return member.WaitForEnd();
  });
  auto first = Run("trainer", 0, [](JobMember& member) {
    EXPECT_GE(member.AddSamples(5), 5);
    EXPECT_THAT(member.FinishSamples(), async::IsOkAndHolds(65));
    return member.EndJob();
  });
  ExpectAllOk({&first, &second, &server});
}

TEST_F(JobMemberTest, AllReportTheErrorOfTheOneThatFailed) {
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, [](JobMember& member) {
    // Ends with the job, although nothing completes it.
    async::Promise<void> never;
    const absl::Status status = member.WaitFor(never.future());
    EXPECT_THAT(member.Check(), StatusIs(absl::StatusCode::kUnavailable));
    return status;
  });
  auto first = Run("trainer", 0, [](JobMember&) {
    return absl::DataLossError("the data are damaged");
  });
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kDataLoss));
  for (auto* other : {&server, &second}) {
    EXPECT_THAT(other->get(), StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("the data are damaged")));
  }
}

TEST_F(JobMemberTest, CallsOfAScopeEndWithTheJob) {
  async::Promise<void> never;
  ASSERT_THAT(registry_.Register(kWait, [&never] { return never.future(); }),
              IsOk());
  async::Promise<void> calling;
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, [&](JobMember& member) {
    const JobMember::CallScope scope(member);
    const async::Future<void> call = member.agent().Async("server0", kWait);
    calling.Set(absl::OkStatus());
    EXPECT_THAT(call.Wait(), StatusIs(absl::StatusCode::kCancelled));
    // Also those that begin later.
    EXPECT_THAT(member.agent().Sync("server0", kWait),
                StatusIs(absl::StatusCode::kCancelled));
    return call.result();
  });
  auto first = Run("trainer", 0, [&](JobMember&) {
    EXPECT_THAT(calling.future().Wait(), IsOk());
    return absl::DataLossError("the data are damaged");
  });
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(second.get(), StatusIs(absl::StatusCode::kUnavailable,
                                     HasSubstr("the data are damaged")));
  EXPECT_THAT(server.get(), StatusIs(absl::StatusCode::kUnavailable));
}

// The error of trainer 1 is a consequence of that of trainer 0, of which it
// hears later.
TEST_F(JobMemberTest, LeaveWaitsForTheCause) {
  async::Promise<void> leaving;
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, [&](JobMember&) {
    leaving.Set(absl::OkStatus());
    return absl::UnavailableError("a rank has died");
  });
  auto first = Run("trainer", 0, [&](JobMember& member) {
    EXPECT_THAT(leaving.future().Wait(), IsOk());
    EXPECT_THAT(member.Check(), IsOk());
    return absl::DataLossError("the data are damaged");
  });
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(second.get(), StatusIs(absl::StatusCode::kUnavailable,
                                     HasSubstr("the data are damaged")));
  EXPECT_THAT(server.get(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(JobMemberTest, ProcessesOfARoleMeet) {
  std::atomic<int> arrivals = 0;
  const auto meet = [&arrivals](JobMember& member) {
    for (const int round : {1, 2, 3}) {
      ++arrivals;
      const absl::Status met = member.Meet(absl::StrCat("round ", round));
      if (!met.ok()) return met;
      EXPECT_GE(arrivals, 2 * round);
    }
    return absl::OkStatus();
  };
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, [&](JobMember& member) {
    EXPECT_THAT(meet(member), IsOk());
    return member.WaitForEnd();
  });
  auto first = Run("trainer", 0, [&](JobMember& member) {
    EXPECT_THAT(meet(member), IsOk());
    return member.EndJob();
  });
  ExpectAllOk({&first, &second, &server});
}

TEST_F(JobMemberTest, AMeetingIsNotLostWhenTheJobEndsAfterIt) {
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, [](JobMember& member) {
    EXPECT_THAT(member.Meet("last"), IsOk());
    EXPECT_THAT(member.WaitForEnd(), IsOk());
    // As if it learned of the end before the end of the meeting.
    EXPECT_THAT(member.Meet("last"), IsOk());
    EXPECT_THAT(member.Meet("more"),
                StatusIs(absl::StatusCode::kCancelled,
                         HasSubstr("ended before all met for \"more\"")));
    return absl::OkStatus();
  });
  auto first = Run("trainer", 0, [](JobMember& member) {
    EXPECT_THAT(member.Meet("last"), IsOk());
    return member.EndJob();
  });
  ExpectAllOk({&first, &second, &server});
}

TEST_F(JobMemberTest, MeetingsEndWithTheJob) {
  auto server = Run("server", 0, WaitForEnd);
  auto second =
      Run("trainer", 1, [](JobMember& member) { return member.Meet("end"); });
  auto first = Run("trainer", 0, [](JobMember&) {
    return absl::DataLossError("the data are damaged");
  });
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(second.get(), StatusIs(absl::StatusCode::kUnavailable,
                                     HasSubstr("the data are damaged")));
  EXPECT_FALSE(server.get().ok());
}

TEST_F(JobMemberTest, WaitsReturnTheResultWhileTheJobRuns) {
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, [](JobMember& member) {
    EXPECT_THAT(member.WaitFor(async::MakeReadyFuture<int>(7)),
                async::IsOkAndHolds(7));
    EXPECT_THAT(
        member.WaitFor(async::MakeReadyFuture<void>(absl::AbortedError("x"))),
        StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT(member.FinishSamples(), IsOk());
    return member.WaitForEnd();
  });
  auto first = Run("trainer", 0, [](JobMember& member) {
    EXPECT_THAT(member.FinishSamples(), IsOk());
    return member.EndJob();
  });
  ExpectAllOk({&first, &second, &server});
}

}  // namespace
}  // namespace hawser::launch
