#include "net/server/held_connections.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "async/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kMoment = absl::Milliseconds(1);

class HeldConnectionsTest : public testing::Test {
 protected:
  // A connection with the descriptor `fd`, which is not open.
  static HeldConnections::Connection Connection(int fd) { return {.fd = fd}; }

  bool Holds(const std::string& address, int fd = -1) {
    return held_.Hold(address, Connection(fd), now_);
  }

  std::vector<int> Take() {
    std::vector<int> taken;
    for (const HeldConnections::Connection& connection : held_.Take(now_)) {
      taken.push_back(connection.fd);
    }
    return taken;
  }

  void Advance(absl::Duration time) { now_ = async::AddDelay(now_, time); }

  async::MonotonicTime now_ = std::chrono::steady_clock::now();
  HeldConnections held_;
};

TEST_F(HeldConnectionsTest, AddressesWithoutMisuseDoNotWait) {
  held_.OnMisuse("b", now_);
  EXPECT_FALSE(Holds("a"));
  EXPECT_EQ(held_.PollTimeout(now_), -1);
}

TEST_F(HeldConnectionsTest, ConnectionsWaitAndPassOneByOne) {
  held_.OnMisuse("a", now_);
  EXPECT_TRUE(Holds("a", -2));
  EXPECT_TRUE(Holds("a", -3));
  EXPECT_EQ(held_.PollTimeout(now_), 2000);
  Advance(HeldConnections::kFirstWait - kMoment);
  EXPECT_THAT(Take(), IsEmpty());
  Advance(kMoment);
  EXPECT_THAT(Take(), ElementsAre(-2));
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(held_.PollTimeout(now_), 100);
  // In the order of arrival.
  EXPECT_TRUE(Holds("a", -4));
  Advance(HeldConnections::kSpacing);
  EXPECT_THAT(Take(), ElementsAre(-3));
  Advance(HeldConnections::kSpacing);
  EXPECT_THAT(Take(), ElementsAre(-4));
  EXPECT_TRUE(Holds("a", -5));
  Advance(HeldConnections::kSpacing);
  EXPECT_THAT(Take(), ElementsAre(-5));
  Advance(HeldConnections::kSpacing);
  EXPECT_FALSE(Holds("a", -6));
  EXPECT_TRUE(Holds("a", -7));
}

TEST_F(HeldConnectionsTest, FurtherMisuseKeepsThoseThatWait) {
  held_.OnMisuse("a", now_);
  EXPECT_TRUE(Holds("a", -2));
  Advance(absl::Seconds(1));
  held_.OnMisuse("a", now_);
  Advance(2 * HeldConnections::kFirstWait - kMoment);
  EXPECT_THAT(Take(), IsEmpty());
  Advance(kMoment);
  EXPECT_THAT(Take(), ElementsAre(-2));
}

TEST_F(HeldConnectionsTest, WaitIsBoundedHoweverOftenItIsMisused) {
  for (int i = 0; i < 5000; ++i) held_.OnMisuse("a", now_);
  EXPECT_TRUE(Holds("a", -2));
  Advance(HeldConnections::kMaxWait - kMoment);
  EXPECT_THAT(Take(), IsEmpty());
  Advance(kMoment);
  EXPECT_THAT(Take(), ElementsAre(-2));
}

TEST_F(HeldConnectionsTest, MisuseIsForgiven) {
  held_.OnMisuse("a", now_);
  Advance(HeldConnections::kForgiven);
  EXPECT_FALSE(Holds("a"));
  EXPECT_FALSE(Holds("a"));
  held_.OnMisuse("a", now_);
  EXPECT_TRUE(Holds("a", -2));
  Advance(HeldConnections::kFirstWait);
  EXPECT_THAT(Take(), ElementsAre(-2));
}

TEST_F(HeldConnectionsTest, Ipv6AddressesOfAPrefixCountAsOne) {
  const std::string prefix("\xfd\0\0\0\0\0\0\1", 8);
  held_.OnMisuse(prefix + "12345678", now_);
  EXPECT_TRUE(Holds(prefix + "abcdefgh"));
  EXPECT_FALSE(Holds("87654321" + prefix));
  // IPv4 addresses at a socket for both versions.
  const std::string mapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  held_.OnMisuse(mapped + "1234", now_);
  EXPECT_TRUE(Holds(mapped + "1234"));
  EXPECT_FALSE(Holds(mapped + "1235"));
}

TEST_F(HeldConnectionsTest, ClosesWhatIsLeft) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  {
    HeldConnections held;
    held.OnMisuse("a", now_);
    EXPECT_TRUE(held.Hold("a", Connection(fd), now_));
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

}  // namespace
}  // namespace hawser::net
