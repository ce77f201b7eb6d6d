#include "rpc/transport/gate.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

TEST(GateTest, AdmitsUntilClosed) {
  Gate gate;
  {
    Gate::Entry entry(&gate);
    EXPECT_TRUE(entry);
    Gate::Entry second(&gate);
    EXPECT_TRUE(second);
  }
  gate.Close();
  gate.Close();
  Gate::Entry late(&gate);
  EXPECT_FALSE(late);
}

TEST(GateTest, CloseWaitsForEntries) {
  Gate gate;
  absl::Notification entered;
  std::atomic<bool> leaving{false};
  std::thread inside([&] {
    Gate::Entry entry(&gate);
    entered.Notify();
    // Wait until the gate is closed: Close is then waiting, or about to wait.
    while (Gate::Entry(&gate)) std::this_thread::yield();
    leaving = true;
  });
  entered.WaitForNotification();
  gate.Close();
  EXPECT_TRUE(leaving);
  inside.join();
}

}  // namespace
}  // namespace hawser::rpc
