#include "launch/termination_signals.h"

#include <unistd.h>

#include <csignal>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::launch {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;

class TerminationSignalsTest : public testing::TestWithParam<int> {
 protected:
  // Sends one signal. The kernel merges equal signals that are pending, so the
  // previous one must have been received.
  void Send() const { ASSERT_EQ(kill(getpid(), GetParam()), 0); }

  const TerminationSignals signals_;
};

TEST_P(TerminationSignalsTest, OneSignalShutsDownGracefully) {
  Send();
  std::vector<bool> calls;
  EXPECT_THAT(signals_.Serve([&](bool graceful) {
    calls.push_back(graceful);
    return absl::DataLossError("from the worker");
  }),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(calls, ElementsAre(true));
}

TEST_P(TerminationSignalsTest, SecondSignalStopsAtOnce) {
  Send();
  absl::Notification stopped;
  EXPECT_THAT(signals_.Serve([&](bool graceful) {
    if (!graceful) {
      stopped.Notify();
      return absl::OkStatus();
    }
    Send();
    stopped.WaitForNotification();
    return absl::CancelledError("cut short");
  }),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(TerminationSignalsTest, SecondSignalEndsAProcessWhoseHandlerBlocks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Send();
        (void)signals_.Serve([&](bool graceful) {
          if (graceful) Send();
          absl::Notification().WaitForNotification();
          return absl::OkStatus();
        });
      },
      testing::ExitedWithCode(2), "at a second signal");
}

// The signal that ends the wait for a second signal does not stay pending.
TEST_P(TerminationSignalsTest, ServesAgain) {
  for (int i = 0; i < 100; ++i) {
    std::vector<bool> calls;
    Send();
    EXPECT_THAT(signals_.Serve([&](bool graceful) {
      calls.push_back(graceful);
      return absl::OkStatus();
    }),
                IsOk());
    ASSERT_THAT(calls, ElementsAre(true));
    sigset_t pending;
    sigpending(&pending);
    ASSERT_FALSE(sigismember(&pending, GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, TerminationSignalsTest,
                         testing::Values(SIGTERM, SIGINT), [](const auto& p) {
                           return p.param == SIGTERM ? "Term" : "Int";
                         });

}  // namespace
}  // namespace hawser::launch
