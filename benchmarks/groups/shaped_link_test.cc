#include "benchmarks/groups/shaped_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "fs/unique_fd.h"
#include "gtest/gtest.h"

namespace hawser::benchmarks {
namespace {

using ::hawser::async::IsOk;

constexpr int kMbitPerS = 100;
constexpr size_t kBytes = 2'000'000;

ino_t OwnNamespace() {
  struct stat status = {};
  EXPECT_EQ(stat("/proc/thread-self/ns/net", &status), 0);
  return status.st_ino;
}

sockaddr_in AddressOf(int end) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  EXPECT_EQ(
      inet_pton(AF_INET, ShapedLink::Address(end).c_str(), &address.sin_addr),
      1);
  return address;
}

class ShapedLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    link_ = ShapedLink::Create(kMbitPerS);
    if (absl::IsFailedPrecondition(link_.status())) {
      GTEST_SKIP() << link_.status().message();
    }
    ASSERT_THAT(link_, IsOk());
  }

  // A socket stays in the namespace in which it was made: a thread of its own
  // makes it there.
  fs::UniqueFd SocketAt(int end) {
    fs::UniqueFd made;
    std::thread([&] {
      EXPECT_THAT(link_->Enter(end), IsOk());
      made = fs::UniqueFd(socket(AF_INET, SOCK_STREAM, 0));
    }).join();
    EXPECT_TRUE(made.valid());
    return made;
  }

  // A socket at `end` that listens; writes where to `address`.
  fs::UniqueFd ListenerAt(int end, sockaddr_in& address) {
    fs::UniqueFd listener = SocketAt(end);
    address = AddressOf(end);
    socklen_t bytes = sizeof(address);
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address),
                          &bytes),
              0);
    return listener;
  }

  absl::StatusOr<ShapedLink> link_ = absl::UnknownError("not made");
};

TEST_F(ShapedLinkTest, CreateLeavesTheThreadWhereItWas) {
  const ino_t before = OwnNamespace();
  ASSERT_THAT(ShapedLink::Create(kMbitPerS), IsOk());
  EXPECT_EQ(OwnNamespace(), before);
  EXPECT_EQ(if_nametoindex("link0"), 0u);
}

TEST_F(ShapedLinkTest, EachEndHasANamespaceAndADevice) {
  const ino_t own = OwnNamespace();
  ino_t of_end[2] = {};
  for (const int end : {0, 1}) {
    std::thread([&] {
      EXPECT_THAT(link_->Enter(end), IsOk());
      of_end[end] = OwnNamespace();
      EXPECT_NE(if_nametoindex("link0"), 0u);
    }).join();
    EXPECT_NE(of_end[end], own);
  }
  EXPECT_NE(of_end[0], of_end[1]);
}

TEST_F(ShapedLinkTest, ProcessesOfOneEndReachEachOther) {
  for (const int end : {0, 1}) {
    sockaddr_in address = {};
    const fs::UniqueFd listener = ListenerAt(end, address);
    const fs::UniqueFd client = SocketAt(end);
    // Does not wait for a device that is down.
    ASSERT_EQ(fcntl(client.get(), F_SETFL, O_NONBLOCK), 0);
    (void)connect(client.get(), reinterpret_cast<sockaddr*>(&address),
                  sizeof(address));
    pollfd event = {.fd = listener.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&event, 1, 10'000), 1) << end;
  }
}

TEST_F(ShapedLinkTest, TheRateIsLimitedInBothDirections) {
  for (const int from : {0, 1}) {
    sockaddr_in address = {};
    const fs::UniqueFd listener = ListenerAt(1 - from, address);
    const fs::UniqueFd sender = SocketAt(from);
    ASSERT_EQ(connect(sender.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    const fs::UniqueFd receiver(accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(receiver.valid());
    const auto begin = std::chrono::steady_clock::now();
    std::thread sending([&] {
      const std::string data(kBytes, 'x');
      for (size_t sent = 0; sent < kBytes;) {
        const ssize_t count =
            send(sender.get(), data.data() + sent, kBytes - sent, 0);
        ASSERT_GT(count, 0);
        sent += static_cast<size_t>(count);
      }
    });
    std::vector<char> received(kBytes);
    EXPECT_EQ(recv(receiver.get(), received.data(), kBytes, MSG_WAITALL),
              static_cast<ssize_t>(kBytes));
    sending.join();
    const std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - begin;
    // All but the burst, which is 128 KiB.
    EXPECT_GT(time.count(), (kBytes - 131'072) * 8 / (kMbitPerS * 1e6));
  }
}

}  // namespace
}  // namespace hawser::benchmarks
