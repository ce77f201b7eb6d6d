#include "net/server/silent_connections.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr async::MonotonicTime kStart{};

class SilentConnectionsTest : public testing::Test {
 protected:
  // Adds a connection and returns the client's end.
  int AddConnection(async::MonotonicTime now) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()),
              0);
    connections_.Add({.fd = ends[1], .listening_fd = ++listening_fd_}, now);
    clients_.push_back(ends[0]);
    return ends[0];
  }
  ~SilentConnectionsTest() override {
    for (const int fd : clients_) close(fd);
    for (const int fd : taken_) close(fd);
  }
  std::vector<SilentConnections::Spoken> Take(async::MonotonicTime now) {
    std::vector<SilentConnections::Spoken> taken = connections_.Take(now);
    for (const auto& spoken : taken) taken_.push_back(spoken.connection.fd);
    return taken;
  }

  SilentConnections connections_;

 private:
  int listening_fd_ = 100;
  std::vector<int> clients_;
  std::vector<int> taken_;
};

TEST_F(SilentConnectionsTest, FirstByteIsReturnedAndLeftInTheSocket) {
  const int client = AddConnection(kStart);
  AddConnection(kStart);
  EXPECT_THAT(Take(kStart), IsEmpty());
  ASSERT_EQ(write(client, "PRI", 3), 3);
  const auto taken = Take(kStart);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].connection.listening_fd, 101);
  EXPECT_EQ(taken[0].first, 'P');
  std::array<char, 4> bytes{};
  EXPECT_EQ(read(taken[0].connection.fd, bytes.data(), bytes.size()), 3);
  EXPECT_THAT(Take(kStart), IsEmpty());
}

TEST_F(SilentConnectionsTest, SilenceEnds) {
  EXPECT_EQ(connections_.PollTimeout(kStart), -1);
  AddConnection(kStart);
  AddConnection(kStart + std::chrono::milliseconds(400));
  const auto early = kStart + std::chrono::microseconds(999'500);
  EXPECT_EQ(connections_.PollTimeout(early), 1);
  EXPECT_THAT(Take(early), IsEmpty());
  const auto late = kStart + std::chrono::seconds(1);
  EXPECT_EQ(connections_.PollTimeout(late), 0);
  const auto taken = Take(late);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].connection.listening_fd, 101);
  EXPECT_EQ(taken[0].first, std::nullopt);
  EXPECT_EQ(connections_.PollTimeout(late), 400);
}

TEST_F(SilentConnectionsTest, ClosedConnectionsNeedNotWait) {
  const int client = AddConnection(kStart);
  std::vector<pollfd> waiting;
  connections_.AppendTo(waiting);
  ASSERT_THAT(waiting, SizeIs(1));
  shutdown(client, SHUT_RDWR);
  EXPECT_EQ(poll(waiting.data(), waiting.size(), -1), 1);
  const auto taken = Take(kStart);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].first, std::nullopt);
}

TEST(SilentConnectionsLifetimeTest, DestructionClosesWhatIsLeft) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  {
    SilentConnections connections;
    connections.Add({.fd = ends[1]}, kStart);
  }
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace hawser::net
