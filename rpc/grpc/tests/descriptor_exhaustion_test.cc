// A server whose process runs out of descriptors serves again once some are
// free (gRPC's own listener does not: CVE-2023-4785).

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

// The highest descriptor in use.
int HighestDescriptor() {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(fd);
  int highest = fd;
  for (int i = fd; i < fd + 64; ++i) {
    if (fcntl(i, F_GETFD) >= 0) highest = i;
  }
  return highest;
}

// Holds all free descriptors until it is destroyed.
class AllDescriptors {
 public:
  AllDescriptors() {
    for (int fd = 0; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
      held_.push_back(fd);
    }
  }
  ~AllDescriptors() {
    while (!held_.empty()) GiveOne();
  }

  void GiveOne() {
    close(held_.back());
    held_.pop_back();
  }
  size_t count() const { return held_.size(); }

 private:
  std::vector<int> held_;
};

class DescriptorExhaustionTest : public testing::Test {
 protected:
  void Serve(GrpcLimits limits) {
    // Disabled, since shared memory opens and closes descriptors at arbitrary
    // times.
    server_ = std::make_unique<EchoServer>(
        GrpcTransportOptions{.limits = limits, .same_host = false});
    address_ = server_->address();
    ASSERT_TRUE(
        absl::SimpleAtoi(address_.substr(address_.rfind(':') + 1), &port_));
    before_ = *client_.Connect({.address = address_});
    AwaitConnected(*before_);
    ASSERT_THAT(Echo(*before_, "before"), IsOkAndHolds("before"));
    // A low limit, so that all descriptors can be held.
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit_), 0);
    rlimit low = limit_;
    low.rlim_cur = static_cast<rlim_t>(HighestDescriptor()) + 32;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }

  void TearDown() override { setrlimit(RLIMIT_NOFILE, &limit_); }

  // Makes a call over a new connection.
  absl::StatusOr<std::string> Echo(std::string text) {
    GrpcTransport client({.same_host = false});
    return Echo(*client.Connect({.address = address_}).value(),
                std::move(text));
  }
  static absl::StatusOr<std::string> Echo(Connection& connection,
                                          std::string text) {
    return Call(connection, EchoServer::kEcho, std::move(text),
                std::chrono::steady_clock::now() + std::chrono::seconds(20))
        .Wait();
  }

  // A connection over which nothing is sent. Like the next function, it has no
  // assertions, since UBSan's checks need descriptors too.
  int ConnectRaw() const {
    int fd = -1;
    // accept() briefly uses a descriptor even if no connection is queued.
    do {
      fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    } while (fd < 0 && errno == EMFILE);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port_));
    const int result =
        connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to));
    return result == 0 ? fd : -1;
  }

  // Whether the server closes the connection instead of replying or leaving it
  // open.
  static bool IsRefused(int fd) {
    pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
    char byte = 0;
    return poll(&waiting, 1, 20'000) == 1 && recv(fd, &byte, 1, 0) <= 0;
  }

  rlimit limit_{};
  std::unique_ptr<EchoServer> server_;
  GrpcTransport client_{{.same_host = false}};
  // Kept open during the test, since gRPC closes connections, and thus frees
  // descriptors, at arbitrary times.
  std::shared_ptr<Connection> before_;
  std::string address_;
  int port_ = 0;
};

TEST_F(DescriptorExhaustionTest, ServesAgainOnceThereAreDescriptors) {
  Serve({.reserved_descriptors = 0});
  int num_refused = 0;
  {
    AllDescriptors all;
    // One for this end; none for the server's end.
    all.GiveOne();
    for (int i = 0; i < 10; ++i) {
      const int fd = ConnectRaw();
      if (IsRefused(fd)) ++num_refused;
      close(fd);
    }
  }
  EXPECT_EQ(num_refused, 10);
  const auto after = *client_.Connect({.address = address_});
  AwaitConnected(*after);
  EXPECT_THAT(Echo(*after, "after"), IsOkAndHolds("after"));
}

TEST_F(DescriptorExhaustionTest, ConnectionsLeaveDescriptorsToTheProcess) {
  Serve({.reserved_descriptors = 16});
  std::vector<int> flood;
  do {
    flood.push_back(ConnectRaw());
    ASSERT_GE(flood.back(), 0);
  } while (!IsRefused(flood.back()));
  const size_t num_left = AllDescriptors().count();
  EXPECT_GE(num_left, 14u);
  for (int fd : flood) close(fd);
  // The last connection frees its descriptor a little later.
  while (!Echo("after").ok()) {
  }
}

}  // namespace
}  // namespace hawser::rpc
