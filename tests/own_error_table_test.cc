// Tests of errors of the calling agent itself, which do not occur on calls
// through another worker: the code, the worker at fault, its incarnation, and
// if the call may have run.

#include <future>
#include <thread>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "async/blocking_region.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/transport/cancellation.h"
#include "tests/error_table_test_fixture.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc::WorkerInfo;
using ::testing::HasSubstr;

constexpr rpc::Function<void()> kOutlive{"table.Outlive"};

class OwnErrorTableTest : public ErrorTableTest {};

TEST_P(OwnErrorTableTest, AgentThatWasShutDown) {
  const WorkerInfo self = job_.agent(0).info();
  ASSERT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  const absl::Status status = Call(kOne);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("shut down")));
  ExpectAt(self, /*maybe_applied=*/false, status);
}

TEST_P(OwnErrorTableTest, AgentThatIsStopping) {
  const WorkerInfo self = job_.agent(0).info();
  absl::Notification begun;
  std::promise<absl::Status> status;
  // Runs on w0 until it is cancelled, and then calls.
  ASSERT_THAT(job_.registry().Register(
                  kOutlive,
                  [&] {
                    absl::Notification cut_off;
                    rpc::Cancellation::Registration registration =
                        rpc::CurrentCall::Get()->cancellation().OnCancel(
                            [&] { cut_off.Notify(); });
                    begun.Notify();
                    async::BlockingRegion region;
                    cut_off.WaitForNotification();
                    status.set_value(Call(kOne));
                  }),
              IsOk());
  // Called by w0 itself. A peer would cancel the call when it reads that w0 is
  // lost, which happens before w0 stops.
  async::Future<void> outlive = job_.agent(0).Async("w0", kOutlive);
  begun.WaitForNotification();
  ASSERT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  const absl::Status found = status.get_future().get();
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("is stopping")));
  ExpectAt(self, /*maybe_applied=*/false, found);
  EXPECT_THAT(outlive.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(OwnErrorTableTest, AgentThatWasDeclaredLost) {
  const WorkerInfo self = job_.agent(0).info();
  rpc::MembershipLog log(&job_.store(), job_.agent(0).job());
  ASSERT_THAT(log.Append(rpc::LostEvent(self.incarnation,
                                        job_.agent(1).info().incarnation,
                                        "reason of the test")),
              IsOk());
  while (job_.agent(0).DebugInfo()["agent.declared_lost"] != "1") {
    std::this_thread::yield();
  }
  const absl::Status status = Call(kOne);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("declared lost")));
  ExpectAt(self, /*maybe_applied=*/false, status);
}

INSTANTIATE_TEST_SUITE_P(
    Routes, OwnErrorTableTest,
    testing::Combine(testing::ValuesIn(rpc::kTransportParams),
                     testing::Values(Route::kSync, Route::kAsync,
                                     Route::kRemote)),
    kParamName);

}  // namespace
}  // namespace hawser::tests
