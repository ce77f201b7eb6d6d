#include "net/server/connection_limiter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "async/clock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

sockaddr_storage From(const char* address, int port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address, &v4.sin_addr);
  sockaddr_storage peer{};
  std::memcpy(&peer, &v4, sizeof(v4));
  return peer;
}

constexpr async::MonotonicTime kNow{};
constexpr async::MonotonicTime kLater = kNow + std::chrono::seconds(1);

class ConnectionLimiterTest : public testing::Test {
 protected:
  ~ConnectionLimiterTest() override {
    for (int fd : sockets_) close(fd);
  }

  int NewSocket() {
    sockets_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return sockets_.back();
  }
  void CloseFirst() {
    close(sockets_.front());
    sockets_.erase(sockets_.begin());
  }

  std::vector<int> sockets_;
};

TEST_F(ConnectionLimiterTest, TotalIsLimited) {
  ConnectionLimiter connections({.total = 2, .per_address = 2});
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 1), kNow));
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.2", 1), kNow));
  EXPECT_FALSE(connections.Add(NewSocket(), From("10.0.0.3", 1), kNow));
  CloseFirst();
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.3", 1), kLater));
}

TEST_F(ConnectionLimiterTest, AllPortsOfAnAddressCountTogether) {
  ConnectionLimiter connections({.total = 100, .per_address = 2});
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 1), kNow));
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 2), kNow));
  EXPECT_FALSE(connections.Add(NewSocket(), From("10.0.0.1", 3), kNow));
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.2", 1), kNow));
  CloseFirst();
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 3), kLater));
  EXPECT_FALSE(connections.Add(NewSocket(), From("10.0.0.1", 4), kLater));
}

// A sweep costs one system call per connection, on the accepting thread.
TEST_F(ConnectionLimiterTest, SweepsAtALimitAreRateLimited) {
  ConnectionLimiter connections({.total = 2, .per_address = 2});
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 1), kNow));
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 2), kNow));
  EXPECT_FALSE(connections.Add(NewSocket(), From("10.0.0.1", 3), kNow));
  CloseFirst();
  const auto almost = kNow + std::chrono::milliseconds(99);
  EXPECT_FALSE(connections.Add(NewSocket(), From("10.0.0.1", 3), almost));
  EXPECT_EQ(connections.num_known(), 2);
  const auto then = kNow + std::chrono::milliseconds(100);
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 3), then));
}

TEST_F(ConnectionLimiterTest, ReusedDescriptorIsANewConnection) {
  ConnectionLimiter connections({.total = 1, .per_address = 1});
  EXPECT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", 1), kNow));
  const int fd = sockets_.front();
  CloseFirst();
  ASSERT_EQ(NewSocket(), fd);
  EXPECT_TRUE(connections.Add(fd, From("10.0.0.1", 2), kNow));
}

TEST_F(ConnectionLimiterTest,
       ClosedConnectionsAreRemovedBeforeALimitIsReached) {
  ConnectionLimiter connections({.total = 1'000'000, .per_address = 1'000'000});
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(connections.Add(NewSocket(), From("10.0.0.1", i), kNow));
    CloseFirst();
    ASSERT_LE(connections.num_known(), 64);
  }
}

}  // namespace
}  // namespace hawser::net
