#include "net/tcp_prober.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// A socket that listens and does not accept, as that of a stopped process.
class DeafSocket {
 public:
  explicit DeafSocket(int backlog = SOMAXCONN)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, any, size), 0);
    EXPECT_EQ(getsockname(fd_, any, &size), 0);
    EXPECT_EQ(listen(fd_, backlog), 0);
    port_ = ntohs(address.sin_port);
  }
  ~DeafSocket() { close(fd_); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  int port() const { return port_; }

 private:
  const int fd_;
  int port_ = 0;
};

async::Future<void> Probe(TcpProber& prober, const std::string& address,
                          absl::Duration timeout = absl::Seconds(30)) {
  auto promise = std::make_shared<async::Promise<void>>();
  async::Future<void> result = promise->future();
  prober.Probe(address, timeout,
               [promise](const absl::Status& status) { promise->Set(status); });
  return result;
}

TEST(TcpProberTest, SystemAcceptsInPlaceOfAProcessThatDoesNotRun) {
  TcpProber prober;
  const DeafSocket socket;
  EXPECT_THAT(Probe(prober, socket.address()).Wait(), IsOk());
}

TEST(TcpProberTest, ResolvesHostNames) {
  addrinfo* addresses = nullptr;
  if (getaddrinfo("localhost", nullptr, nullptr, &addresses) != 0) {
    GTEST_SKIP() << "this machine has no address for localhost (/etc/hosts)";
  }
  freeaddrinfo(addresses);
  TcpProber prober;
  const DeafSocket socket;
  EXPECT_THAT(Probe(prober, absl::StrCat("localhost:", socket.port())).Wait(),
              IsOk());
}

TEST(TcpProberTest, RefusedConnectionsAreUnavailableAtOnce) {
  TcpProber prober;
  const std::string address = DeafSocket().address();
  EXPECT_THAT(Probe(prober, address).Wait(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(absl::StrCat("cannot connect to ", address,
                                              ": Connection refused"))));
}

TEST(TcpProberTest, SilentHostsEndTheProbeAtItsTimeout) {
  TcpProber prober;
  // Connections beyond the backlog get no reply.
  const DeafSocket full(/*backlog=*/0);
  std::vector<int> queued;
  for (int i = 0; i < 4; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(full.port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    queued.push_back(fd);
  }
  const DeafSocket other;
  const auto late = Probe(prober, full.address(), absl::Milliseconds(50));
  // Does not wait for the other.
  EXPECT_THAT(Probe(prober, other.address()).Wait(), IsOk());
  EXPECT_THAT(late.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                    HasSubstr("does not reply in time")));
  for (const int fd : queued) close(fd);
}

TEST(TcpProberTest, MalformedAndUnknownAddressesAreUnavailable) {
  TcpProber prober;
  for (const char* address :
       {"", "host", "127.0.0.1:", "does-not-exist.invalid:1",
        "unix:/does/not/exist"}) {
    EXPECT_THAT(Probe(prober, address).Wait(),
                StatusIs(absl::StatusCode::kUnavailable))
        << address;
  }
}

TEST(TcpProberTest, UnixSockets) {
  char directory[] = "/tmp/hawser_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = absl::StrCat(directory, "/s");
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
      0);
  ASSERT_EQ(listen(fd, 1), 0);
  TcpProber prober;
  EXPECT_THAT(Probe(prober, "unix:" + path).Wait(), IsOk());
  close(fd);
  EXPECT_THAT(Probe(prober, "unix:" + path).Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
  unlink(path.c_str());
  rmdir(directory);
}

TEST(TcpProberTest, DestructionDropsProbesInProgress) {
  const DeafSocket full(/*backlog=*/0);
  const auto held = std::make_shared<int>(0);
  {
    TcpProber prober;
    for (int i = 0; i < 8; ++i) {
      prober.Probe(full.address(), absl::Hours(1),
                   [held](const absl::Status&) {});
    }
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace hawser::net
