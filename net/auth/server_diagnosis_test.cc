#include "net/auth/server_diagnosis.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "net/testing/test_credentials.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(30);

class GrpcServer {
 public:
  explicit GrpcServer(
      const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    server_ = grpc::ServerBuilder()
                  .RegisterCallbackGenericService(&service_)
                  .AddListeningPort("127.0.0.1:0", credentials, &port_)
                  .BuildAndStart();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  grpc::CallbackGenericService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Sends the same reply to each client, and closes the connection.
class RawServer {
 public:
  explicit RawServer(std::string reply)
      : reply_(std::move(reply)), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, any, size), 0);
    EXPECT_EQ(getsockname(fd_, any, &size), 0);
    EXPECT_EQ(listen(fd_, SOMAXCONN), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~RawServer() {
    // Ends accept().
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  const std::string& address() const { return address_; }

 private:
  void Run() {
    while (true) {
      const int client = accept(fd_, nullptr, nullptr);
      if (client < 0) return;
      EXPECT_EQ(send(client, reply_.data(), reply_.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(reply_.size()));
      shutdown(client, SHUT_WR);
      // Until the client closes, so that the kernel does not reset.
      char bytes[256];
      while (recv(client, bytes, sizeof(bytes), 0) > 0) {
      }
      close(client);
    }
  }

  const std::string reply_;
  const int fd_;
  std::string address_;
  std::thread thread_;
};

TEST(ServerDiagnosisTest, ServerWithoutTls) {
  const GrpcServer server(grpc::InsecureServerCredentials());
  EXPECT_THAT(DiagnoseServer(server.address(), /*tls=*/false, kTimeout),
              IsOk());
  EXPECT_THAT(
      DiagnoseServer(server.address(), /*tls=*/true, kTimeout),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr(server.address()),
                     HasSubstr("does not use TLS, and this end does"))));
}

TEST(ServerDiagnosisTest, ServerWithTls) {
  TestAuthority authority;
  const auto credentials = authority.Make("ps0");
  const GrpcServer server(credentials->ForServer());
  EXPECT_THAT(DiagnoseServer(server.address(), /*tls=*/true, kTimeout), IsOk());
  EXPECT_THAT(DiagnoseServer(server.address(), /*tls=*/false, kTimeout),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr(server.address()),
                             HasSubstr("uses TLS, and this end does not"))));
}

TEST(ServerDiagnosisTest, OtherProtocolsAreQuoted) {
  for (const std::string_view reply :
       {"SSH-2.0-OpenSSH_9.2p1\r\n",
        "HTTP/1.1 400 Bad Request\r\nServer: x\r\n", "-ERR unknown command\r\n",
        "no"}) {
    const RawServer server{std::string(reply)};
    const std::string first_line(reply.substr(0, reply.find('\r')));
    for (const bool tls : {false, true}) {
      EXPECT_THAT(
          DiagnoseServer(server.address(), tls, kTimeout),
          StatusIs(absl::StatusCode::kFailedPrecondition,
                   AllOf(HasSubstr(server.address()),
                         HasSubstr(absl::StrCat("\"", first_line, "\"")))));
    }
  }
}

TEST(ServerDiagnosisTest, ReplyIsQuotedAsOneShortPrintableLine) {
  const RawServer server(
      absl::StrCat("\x1b[2J", std::string(100, 'x'), "\r\n"));
  const absl::Status status =
      DiagnoseServer(server.address(), /*tls=*/false, kTimeout);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr(absl::StrCat(
                                   "\"\\x1b[2J", std::string(36, 'x'), "\""))));
}

TEST(ServerDiagnosisTest, WaitingMayHelpWhereNobodyReplies) {
  std::string closed;
  {
    const RawServer server("");
    closed = server.address();
    // Closes each connection, as a server does that is starting or stopping.
    EXPECT_THAT(DiagnoseServer(closed, /*tls=*/false, kTimeout), IsOk());
  }
  EXPECT_THAT(DiagnoseServer(closed, /*tls=*/false, kTimeout), IsOk());
  for (const char* address : {"", "no port", "127.0.0.1:", "[::1]:x",
                              "unix:/tmp/x", "does-not-exist.invalid:1"}) {
    EXPECT_THAT(DiagnoseServer(address, /*tls=*/false, kTimeout), IsOk())
        << address;
  }
}

TEST(ServerDiagnosisTest, SilentServerEndsInTime) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(fd, any, size), 0);
  ASSERT_EQ(listen(fd, SOMAXCONN), 0);
  ASSERT_EQ(getsockname(fd, any, &size), 0);
  EXPECT_THAT(
      DiagnoseServer(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)),
                     /*tls=*/false, absl::Milliseconds(50)),
      IsOk());
  close(fd);
}

TEST(ServerDiagnosisTest, MissingRouteIsNamed) {
  // The broadcast address of IPv4 has no route for TCP.
  EXPECT_THAT(DiagnoseServer("255.255.255.255:1", /*tls=*/false, kTimeout),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("255.255.255.255:1"),
                             HasSubstr("unreachable"))));
}

// In a process of its own, since a lowered limit concerns all of it.
[[noreturn]] void DiagnoseWithoutDescriptors() {
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) std::abort();
  const absl::Status status =
      DiagnoseServer("127.0.0.1:1", /*tls=*/false, kTimeout);
  // Without destructors, whose checks by UBSan need a descriptor.
  std::_Exit(absl::IsResourceExhausted(status) ? 0 : 1);
}

TEST(ServerDiagnosisDeathTest, MissingDescriptorsAreNamed) {
  EXPECT_EXIT(DiagnoseWithoutDescriptors(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hawser::net
