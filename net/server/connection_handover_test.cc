#include "net/server/connection_handover.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::testing::ElementsAre;

int Open() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(ConnectionHandoverTest, ConnectionsArePassedInOrder) {
  std::vector<int> passed;
  async::Promise<void> done;
  const async::Future<void> all = done.future();
  ConnectionHandover handover(
      [&](const ConnectionHandover::Connection& connection) {
        passed.push_back(connection.fd);
        if (passed.size() == 3) done.Set(absl::OkStatus());
      });
  for (int fd : {1000, 1001, 1002}) handover.Add({.fd = fd});
  EXPECT_TRUE(all.Wait().ok());
  EXPECT_THAT(passed, ElementsAre(1000, 1001, 1002));
}

// While one connection keeps the thread, others wait, and the end closes them.
TEST(ConnectionHandoverTest, WaitingConnectionsAreClosedAtTheEnd) {
  async::Promise<void> reading;
  const async::Future<void> reads = reading.future();
  async::Promise<void> end;
  const async::Future<void> ended = end.future();
  auto handover = std::make_unique<ConnectionHandover>(
      [&](const ConnectionHandover::Connection&) {
        reading.Set(absl::OkStatus());
        (void)ended.Wait();
      });
  handover->Add({.fd = 1000});
  EXPECT_TRUE(reads.Wait().ok());
  const int waiting = Open();
  handover->Add({.fd = waiting});
  EXPECT_TRUE(IsOpen(waiting));
  handover->Stop();
  EXPECT_FALSE(IsOpen(waiting));
  const int late = Open();
  handover->Add({.fd = late});
  EXPECT_FALSE(IsOpen(late));
  end.Set(absl::OkStatus());
  handover.reset();
}

TEST(ConnectionHandoverTest, ThreadsHaveALowPriority) {
  async::Promise<int> nice;
  const async::Future<int> done = nice.future();
  ConnectionHandover handover([&](const ConnectionHandover::Connection&) {
    nice.Set(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())));
  });
  handover.Add({.fd = 1000});
  EXPECT_GE(*done.Wait(), 10);
}

// A connection that keeps its thread does not keep the others.
TEST(ConnectionHandoverTest, ReliefPassesOnWhatWaits) {
  async::Promise<void> end;
  const async::Future<void> ended = end.future();
  async::Promise<void> passed;
  const async::Future<void> other = passed.future();
  ConnectionHandover handover(
      [&](const ConnectionHandover::Connection& connection) {
        if (connection.fd == 1000) {
          (void)ended.Wait();
        } else {
          passed.Set(absl::OkStatus());
        }
      });
  handover.Add({.fd = 1000});
  handover.Add({.fd = 1001});
  // The first call sees that the first connection was taken, if it was.
  while (!other.ready()) handover.Relieve();
  end.Set(absl::OkStatus());
}

}  // namespace
}  // namespace hawser::net
