#include "launch/job/job_member.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/job/job_options.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "store/grpc/server.h"
#include "tensor/tensor.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::HasSubstr;

inline constexpr rpc::Function<void()> kWait{"job_member_test.Wait"};

// A job of a server and two trainers, each in a thread of this process.
class JobMemberTest : public testing::Test {
 protected:
  using Work = std::function<absl::Status(JobMember& member)>;

  void SetUp() override {
    auto started = store::StoreServer::Start({});
    ASSERT_THAT(started, IsOk());
    store_ = *std::move(started);
  }

  // Runs `work` as this process, and returns the outcome of leaving.
  std::future<absl::Status> Run(const std::string& role, int index, Work work) {
    JobOptions options;
    options.roles = {{"server", 1}, {"trainer", 2}};
    options.role = role;
    options.index = index;
    options.master = "tcp://" + store_->address();
    options.external_store = true;
    options.silent_limit = absl::Seconds(20);
    rpc::FunctionRegistry* const registry =
        role == "server" ? &registry_ : nullptr;
    return std::async(std::launch::async,
                      [options, work, registry]() -> absl::Status {
                        absl::StatusOr<std::unique_ptr<JobMember>> member =
                            JobMember::Join(options, {}, registry);
                        if (!member.ok()) return member.status();
                        return (*member)->Leave(work(**member));
                      });
  }

  static absl::Status WaitForEnd(JobMember& member) {
    return member.WaitForEnd();
  }

  std::unique_ptr<store::StoreServer> store_;
  // Of the server.
  rpc::FunctionRegistry registry_;
};

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
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(second.get(), IsOk());
  EXPECT_THAT(server.get(), IsOk());
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

TEST_F(JobMemberTest, ProcessesOfARoleFormAGroup) {
  const auto work = [](JobMember& member) -> absl::Status {
    auto group = member.MakeGroup();
    if (!group.ok()) return group.status();
    EXPECT_EQ((*group)->rank(), member.options().index);
    tensor::Tensor sum = tensor::Tensor::Full({2}, (*group)->rank() + 1);
    EXPECT_THAT((*group)->AllReduce(sum), IsOk());
    EXPECT_EQ(sum.ToVector<float>(), std::vector<float>(2, 3));
    return member.options().index == 0 ? member.EndJob() : member.WaitForEnd();
  };
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, work);
  auto first = Run("trainer", 0, work);
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(second.get(), IsOk());
  EXPECT_THAT(server.get(), IsOk());
}

// A process that waits for one that leaves gets the cause.
TEST_F(JobMemberTest, AGroupEndsWithTheErrorOfTheJob) {
  const auto work = [](JobMember& member) -> absl::Status {
    auto group = member.MakeGroup();
    if (!group.ok()) return group.status();
    if (member.options().index == 1) {
      return absl::DataLossError("the data are damaged");
    }
    const absl::Status status = (*group)->Barrier();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("the data are damaged")));
    return status;
  };
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, work);
  auto first = Run("trainer", 0, work);
  EXPECT_THAT(second.get(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("the data are damaged")));
  EXPECT_THAT(server.get(), StatusIs(absl::StatusCode::kUnavailable));
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
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(second.get(), IsOk());
  EXPECT_THAT(server.get(), IsOk());
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
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(second.get(), IsOk());
  EXPECT_THAT(server.get(), IsOk());
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
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(second.get(), IsOk());
  EXPECT_THAT(server.get(), IsOk());
}

}  // namespace
}  // namespace hawser::launch
