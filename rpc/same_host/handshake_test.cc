#include "rpc/same_host/handshake.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "rpc/same_host/tests/same_host_test_fixture.h"

namespace {

// Simulates that the limit fs.epoll.max_user_watches is reached.
std::atomic<bool> no_watches_left{false};
// Simulates that the peer closes its end of a socket before anything is sent.
std::atomic<bool> peer_closes_at_once{false};
// Time by which the monotonic clock is ahead.
std::atomic<int> seconds_ahead{0};

}  // namespace

// Replace the functions of the C library.
extern "C" int epoll_ctl(int epoll, int operation, int fd,
                         epoll_event* event) noexcept {
  if (no_watches_left.load() && operation == EPOLL_CTL_ADD) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_MONOTONIC) time->tv_sec += seconds_ahead.load();
  return result;
}

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (peer_closes_at_once.load()) {
    errno = EPIPE;
    return -1;
  }
  return syscall(SYS_sendmsg, fd, message, flags);
}

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

// Sets `flag` during its lifetime.
class [[nodiscard]] Raised {
 public:
  explicit Raised(std::atomic<bool>* flag) : flag_(*flag) { flag_ = true; }
  ~Raised() { flag_ = false; }

 private:
  std::atomic<bool>& flag_;
};

class HandshakeTest : public SameHostTest {
 protected:
  // Checks that a link that cannot be created while `fault` is set is created
  // later.
  void ExpectAsksAgainAfter(std::atomic<bool>* fault) {
    const auto socket = std::make_shared<FakeSocket>(open_);
    const auto connection = client_->host.Wrap(socket);
    {
      const Raised raised(fault);
      // Triggers the request for a link, which completes in the call.
      EXPECT_THAT(Call(*connection, "/t.T/Echo", Payload("x")).Wait(),
                  StatusIs(absl::StatusCode::kUnavailable));
    }
    Open(*connection);
    EXPECT_THAT(Call(*connection, "/t.T/Echo", Payload("x")).Wait(), IsOk());
    connection->Close(absl::CancelledError("the test has ended"));
  }
};

TEST_F(HandshakeTest, WithoutWatchesConnectingFails) {
  absl::StatusOr<std::unique_ptr<ipc::EventLoop>> loop =
      ipc::EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  v1::OpenSameHostRequest request;
  request.set_boot_id(ipc::BootId());
  const auto acceptor = SameHostAcceptor::Start(
      loop->get(), kMaxMessageBytes,
      [](const ipc::PeerProcess&, const std::optional<net::Identity>&) {
        return true;
      },
      [](SameHostLink::Parts, std::optional<net::Identity>) {});
  ASSERT_THAT(acceptor, IsOk());
  const auto door = (*acceptor)->Admit(request, std::nullopt);
  ASSERT_THAT(door, IsOk());
  std::optional<absl::Status> told;
  {
    const Raised no_watches(&no_watches_left);
    ConnectSameHost(loop->get(), *door, kMaxMessageBytes,
                    [&](const absl::StatusOr<SameHostLink::Parts>& parts) {
                      told = parts.status();
                    });
  }
  ASSERT_TRUE(told.has_value());
  EXPECT_THAT(*told, StatusIs(absl::StatusCode::kResourceExhausted));
  (*acceptor)->Close();
  (*loop)->Shutdown();
}

TEST_F(HandshakeTest, TicketIsGoodForTenSeconds) {
  absl::StatusOr<std::unique_ptr<ipc::EventLoop>> loop =
      ipc::EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  v1::OpenSameHostRequest request;
  request.set_boot_id(ipc::BootId());
  const auto acceptor = SameHostAcceptor::Start(
      loop->get(), kMaxMessageBytes,
      [](const ipc::PeerProcess&, const std::optional<net::Identity>&) {
        return true;
      },
      [](SameHostLink::Parts, std::optional<net::Identity>) {});
  ASSERT_THAT(acceptor, IsOk());
  const auto connect_after = [&](int seconds) {
    const auto door = (*acceptor)->Admit(request, std::nullopt);
    EXPECT_THAT(door, IsOk());
    seconds_ahead += seconds;
    async::Promise<void> connected;
    async::Future<void> result = connected.future();
    ConnectSameHost(
        loop->get(), *door, kMaxMessageBytes,
        [connected = std::move(connected)](
            const absl::StatusOr<SameHostLink::Parts>& parts) mutable {
          connected.Set(parts.status());
        });
    return result.Wait();
  };
  EXPECT_THAT(connect_after(5), IsOk());
  EXPECT_THAT(connect_after(11), StatusIs(absl::StatusCode::kUnavailable));
  seconds_ahead = 0;
  (*acceptor)->Close();
  (*loop)->Shutdown();
}

TEST_F(HandshakeTest, ConnectionRetriesAfterAFailedWatch) {
  ExpectAsksAgainAfter(&no_watches_left);
}

TEST_F(HandshakeTest, ConnectionRetriesAfterAnImmediateClose) {
  ExpectAsksAgainAfter(&peer_closes_at_once);
}

}  // namespace
}  // namespace hawser::rpc
