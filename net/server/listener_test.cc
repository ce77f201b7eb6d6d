// Tests of the user check on Unix sockets, and of the protocol check over TCP.
// For limits, see rpc/grpc/tests/limits_test.cc.

#include "net/server/listener.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "net/health/health.h"
#include "net/health/health_service.h"
#include "net/testing/test_credentials.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// Outcome of a caller.
enum Outcome : int {
  kServed = 0,
  kRefused = 1,
  kMayNotConnect = 2,
  kSilence = 3,
  kNoSuchUser = 4,
};

// Connects to `path` as user `uid` and waits for the first bytes of HTTP/2.
// Safe in a forked child of a multithreaded process: makes only system calls.
Outcome ConnectAs(uid_t uid, const sockaddr_un& path) {
  if (syscall(SYS_setresuid, uid, uid, uid) != 0) return kNoSuchUser;
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const auto* address = reinterpret_cast<const sockaddr*>(&path);
  if (connect(fd, address, sizeof(path)) != 0) {
    return errno == EACCES ? kMayNotConnect : kSilence;
  }
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, /*timeout=*/60'000) <= 0) return kSilence;
  char byte = 0;
  return read(fd, &byte, 1) == 1 ? kServed : kRefused;
}

// Serves at a Unix socket in a world-searchable directory.
class ListenerUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only root can call as another user";
    }
    char directory[] = "/tmp/hawser_XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    directory_ = directory;
    ASSERT_EQ(chmod(directory, 0755), 0);
    path_ = absl::StrCat(directory_, "/socket");
    const mode_t umask_before = umask(0);
    auto listener = Listener::Open(absl::StrCat("unix:", path_));
    umask(umask_before);
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
    grpc::ServerBuilder builder;
    listener_->AttachTo(builder, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    listener_->Start();
  }

  void TearDown() override {
    if (listener_ != nullptr) listener_->Stop();
    health_->Close();
    if (server_ != nullptr) server_->Shutdown();
    if (!directory_.empty()) {
      EXPECT_EQ(rmdir(directory_.c_str()), 0);
    }
  }

  Outcome CallAs(uid_t uid) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const pid_t child = fork();
    if (child == 0) _exit(ConnectAs(uid, address));
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return static_cast<Outcome>(WEXITSTATUS(status));
  }

  std::string directory_, path_;
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Health> health_ =
      std::make_shared<Health>(std::vector<std::string>());
  HealthService service_{health_};
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ListenerUserTest, OtherUsersCannotConnectToThePath) {
  EXPECT_EQ(CallAs(kNobody), kMayNotConnect);
  EXPECT_EQ(CallAs(geteuid()), kServed);
}

TEST_F(ListenerUserTest, OtherUsersAreRefusedEvenIfThePathIsAccessible) {
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(CallAs(kNobody), kRefused);
  EXPECT_EQ(listener_->num_refused(), 1);
  EXPECT_EQ(CallAs(geteuid()), kServed);
  EXPECT_EQ(listener_->num_refused(), 1);
  EXPECT_EQ(listener_->num_accepted(), 1);
}

// Serves over TCP, with TLS or without.
class ListenerProtocolTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto listener = Listener::Open("127.0.0.1:0", {.tls = GetParam()});
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
    grpc::ServerBuilder builder;
    listener_->AttachTo(builder, GetParam()
                                     ? authority_.Make("ps0")->ForServer()
                                     : grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    listener_->Start();
  }

  void TearDown() override {
    if (listener_ != nullptr) listener_->Stop();
    health_->Close();
    if (server_ != nullptr) server_->Shutdown();
  }

  // Returns a connected socket.
  int Connect() const {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
    return fd;
  }

  // The first byte of the reply to `message`; empty if the connection ends.
  static std::optional<char> FirstByteOfReply(int fd,
                                              std::string_view message) {
    EXPECT_EQ(send(fd, message.data(), message.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(message.size()));
    char first = 0;
    const bool replied = recv(fd, &first, 1, 0) == 1;
    return replied ? std::optional<char>(first) : std::nullopt;
  }

  TestAuthority authority_;
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Health> health_ =
      std::make_shared<Health>(std::vector<std::string>());
  HealthService service_{health_};
  std::unique_ptr<grpc::Server> server_;
};

INSTANTIATE_TEST_SUITE_P(Tls, ListenerProtocolTest, testing::Bool());

constexpr std::string_view kHttp2Preface(
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33);
// A record of TLS with a malformed message, to which the server need not reply.
constexpr std::string_view kTlsRecord("\x16\x03\x01\0\x01\0", 6);

TEST_P(ListenerProtocolTest, ClientOfTheOtherKindIsRefusedAndNamed) {
  testing::internal::CaptureStderr();
  const int client = Connect();
  sockaddr_in own = {};
  socklen_t size = sizeof(own);
  getsockname(client, reinterpret_cast<sockaddr*>(&own), &size);
  EXPECT_EQ(FirstByteOfReply(client, GetParam() ? kHttp2Preface : kTlsRecord),
            std::nullopt);
  close(client);
  EXPECT_EQ(listener_->num_refused(), 1);
  EXPECT_EQ(listener_->num_accepted(), 0);
  // Stops the thread, which logs after the refusal.
  listener_->Stop();
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(
          HasSubstr(absl::StrCat("from 127.0.0.1:", ntohs(own.sin_port))),
          HasSubstr(GetParam() ? "this server uses TLS and the client does not"
                               : "the client uses TLS and this server does "
                                 "not")));
}

TEST_P(ListenerProtocolTest, ClientOfItsOwnKindReachesGrpc) {
  const int client = Connect();
  if (GetParam()) {
    EXPECT_EQ(send(client, kTlsRecord.data(), kTlsRecord.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kTlsRecord.size()));
    while (listener_->num_accepted() == 0) std::this_thread::yield();
  } else {
    EXPECT_TRUE(FirstByteOfReply(client, kHttp2Preface).has_value());
  }
  EXPECT_EQ(listener_->num_accepted(), 1);
  EXPECT_EQ(listener_->num_refused(), 0);
  close(client);
}

// Such as a client that waits for the server's SETTINGS.
TEST_P(ListenerProtocolTest, SilentClientReachesGrpc) {
  const int client = Connect();
  while (listener_->num_accepted() == 0) std::this_thread::yield();
  close(client);
}

TEST_P(ListenerProtocolTest, StopClosesSilentConnections) {
  const int client = Connect();
  listener_->Stop();
  listener_.reset();
  char byte = 0;
  EXPECT_LE(recv(client, &byte, 1, 0), 0);
  close(client);
}

}  // namespace
}  // namespace hawser::net
