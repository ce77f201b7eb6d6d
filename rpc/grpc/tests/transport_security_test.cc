// Tests of the checks on listening and on calling.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "net/testing/raw_http2.h"
#include "net/testing/test_credentials.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"
#include "telemetry/testing/recorded_log.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

// Runs over the socket and with shared memory.
class GrpcTransportSecurityTest : public testing::TestWithParam<bool> {
 protected:
  void Serve(GrpcTransportOptions options) {
    options.same_host = GetParam();
    server_ = std::make_unique<EchoServer>(std::move(options));
  }

  // Makes one call of Echo from a new transport.
  absl::StatusOr<std::string> Echo(
      std::shared_ptr<const net::Credentials> credentials,
      const std::string& worker = "") {
    GrpcTransport client({.credentials = std::move(credentials)});
    std::shared_ptr<Connection> connection =
        *client.Connect({.address = server_->address(), .worker = worker});
    AwaitConnected(*connection);
    return Call(*connection, EchoServer::kEcho, "x").Wait();
  }

  std::unique_ptr<EchoServer> server_;
};

TEST_P(GrpcTransportSecurityTest, OnlyLoopbackIsServed) {
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:0", "example.com:80",
        "127.0.0.1.example.com:80", "127.1.2.3.4:1", ":0", "", "*:1"}) {
    GrpcTransport transport;
    EXPECT_THAT(transport.Listen(address, {}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("loopback"),
                               HasSubstr("allow_insecure_network"))))
        << address;
  }
}

TEST_P(GrpcTransportSecurityTest, OtherAddressesNeedTlsOrPermission) {
  net::TestAuthority authority;
  GrpcTransport encrypted({.credentials = authority.Make("ps0")});
  EXPECT_THAT(encrypted.Listen("0.0.0.0:0", {}), IsOk());
  GrpcTransport open({.allow_insecure_network = true});
  const telemetry::RecordedLog log;
  EXPECT_THAT(open.Listen("0.0.0.0:0", {}), IsOk());
  open.Shutdown();
  EXPECT_THAT(log.messages(), Contains(HasSubstr("open to the network")));
}

TEST_P(GrpcTransportSecurityTest, TlsProvesBothEnds) {
  net::TestAuthority authority;
  Serve({.credentials = authority.Make("ps0")});
  EXPECT_THAT(Echo(authority.Make("w1"), "ps0"), IsOkAndHolds("x"));
  // Another worker has taken the address of the expected one.
  EXPECT_THAT(Echo(authority.Make("w1"), "ps1"),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("hawser://default/ps0"),
                             HasSubstr("hawser://default/ps1"))));
}

TEST_P(GrpcTransportSecurityTest, TlsRefusesOtherAuthorities) {
  net::TestAuthority authority;
  net::TestAuthority other;
  Serve({.credentials = authority.Make("ps0")});
  EXPECT_THAT(
      Echo(other.Make("w1"), "ps0"),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("handshake")));
  // Without TLS, the client does not learn the reason.
  GrpcTransport client;
  std::shared_ptr<Connection> connection =
      *client.Connect({.address = server_->address()});
  EXPECT_THAT(Call(*connection, EchoServer::kEcho, "x").Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(GrpcTransportSecurityTest, CallerHasTheIdentityOfItsCertificate) {
  net::TestAuthority authority;
  Serve({.credentials = authority.Make("ps0")});
  GrpcTransport client({.credentials = authority.Make("w1")});
  std::shared_ptr<Connection> connection =
      *client.Connect({.address = server_->address(), .worker = "ps0"});
  AwaitConnected(*connection);
  async::Future<std::string> reply = Call(*connection, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  EXPECT_THAT(server_->held()[0]->caller(),
              IsOkAndHolds(testing::Optional(
                  net::Identity{.job = "default", .worker = "w1"})));
  server_->held()[0]->Reply(Payload("done"));
  EXPECT_THAT(reply.Wait(), IsOkAndHolds("done"));
}

TEST_P(GrpcTransportSecurityTest, EachCallNeedsTheToken) {
  net::TestAuthority files;
  const auto with_token = [&](char digit) {
    net::CredentialsOptions options;
    options.token_path = files.Write("token", std::string(64, digit));
    return *net::Credentials::Create(options, std::nullopt);
  };
  Serve({.credentials = with_token('a')});
  EXPECT_THAT(Echo(with_token('a')), IsOkAndHolds("x"));
  EXPECT_THAT(
      Echo(with_token('b')),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr("not the job's"), Not(HasSubstr("bbbb")))));
  EXPECT_THAT(Echo(nullptr), StatusIs(absl::StatusCode::kUnauthenticated,
                                      HasSubstr("no token")));
}

// gRPC logs each TLS handshake that fails.
TEST_P(GrpcTransportSecurityTest, StrangersCannotFillTheLog) {
  net::TestAuthority authority;
  const telemetry::RecordedLog log;
  testing::internal::CaptureStderr();
  Serve({.credentials = authority.Make("ps0")});
  for (int i = 0; i < 20; ++i) {
    net::RawHttp2 stranger(server_->address());
    // A TLS record that holds no ClientHello.
    ASSERT_TRUE(stranger.SendBytes(std::string("\x16\x03\x01\0\x05hello", 10)));
    ASSERT_TRUE(stranger.AwaitClosed());
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  // None if another test has caused the same within a minute.
  EXPECT_THAT(log.messages(), SizeIs(Le(1)));
}

std::string WayName(const testing::TestParamInfo<bool>& way) {
  return way.param ? "SameHost" : "Socket";
}

INSTANTIATE_TEST_SUITE_P(Ways, GrpcTransportSecurityTest, testing::Bool(),
                         WayName);

}  // namespace
}  // namespace hawser::rpc
