// Reflection and channelz are served only by processes that link them; with TLS
// only to admins.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/test_credentials.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/raw_client.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"
#include "store/grpc/server.h"

#ifndef HAWSER_REFLECTION_LINKED
#define HAWSER_REFLECTION_LINKED 0
#endif
#ifndef HAWSER_CHANNELZ_LINKED
#define HAWSER_CHANNELZ_LINKED 0
#endif

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::string> ListServices(RawClient& client,
                                         const ConnectionTarget& server) {
  // ServerReflectionRequest{list_services: ""}.
  return client.Send(
      server, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      Payload(std::string("\x3a\x00", 2)));
}

absl::StatusOr<std::string> GetServers(RawClient& client,
                                       const ConnectionTarget& server) {
  return client.Send(server, "/grpc.channelz.v1.Channelz/GetServers",
                     Payload());
}

constexpr absl::StatusCode kExpected[] = {absl::StatusCode::kUnimplemented,
                                          absl::StatusCode::kOk};

TEST(DebugServicesTest, WorkersServeWhatIsLinked) {
  GrpcTransport transport;
  const auto handler = [](std::unique_ptr<IncomingCall>) {};
  absl::StatusOr<std::string> address = transport.Listen(
      "127.0.0.1:0",
      {{.path = "/hawser.v1.WorkerService/Call", .handler = handler},
       {.path = "/hawser.v1.RRefService/Create", .handler = handler},
       {.path = "/hawser.v1.WorkerService/Heartbeat", .handler = handler}});
  ASSERT_THAT(address, IsOk());
  RawClient client(RawClient::GrpcOptions{});
  const absl::StatusOr<std::string> services =
      ListServices(client, {.address = *address});
  EXPECT_THAT(services, StatusIs(kExpected[HAWSER_REFLECTION_LINKED]));
  if (HAWSER_REFLECTION_LINKED) {
    EXPECT_THAT(services,
                IsOkAndHolds(AllOf(HasSubstr("hawser.v1.WorkerService"),
                                   HasSubstr("hawser.v1.RRefService"),
                                   HasSubstr("grpc.health.v1.Health"))));
  }
  EXPECT_THAT(GetServers(client, {.address = *address}),
              StatusIs(kExpected[HAWSER_CHANNELZ_LINKED]));
}

TEST(DebugServicesTest, StoresServeWhatIsLinked) {
  auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  RawClient client(RawClient::GrpcOptions{});
  EXPECT_THAT(ListServices(client, {.address = (*server)->address()}),
              StatusIs(kExpected[HAWSER_REFLECTION_LINKED]));
  EXPECT_THAT(GetServers(client, {.address = (*server)->address()}),
              StatusIs(kExpected[HAWSER_CHANNELZ_LINKED]));
}

// Checks which certificates a server of worker "w0" accepts.
void ExpectOnlyAdmins(net::TestAuthority& authority,
                      const std::string& address) {
  constexpr bool kAnyLinked =
      HAWSER_REFLECTION_LINKED || HAWSER_CHANNELZ_LINKED;
  const std::pair<std::vector<std::string>, bool> kCases[] = {
      {{}, false}, {{"ps", "observer"}, false}, {{"ps", "admin"}, true}};
  for (const auto& [roles, admitted] : kCases) {
    RawClient client({.credentials = authority.Make("eye", roles)});
    const ConnectionTarget server{.address = address, .worker = "w0"};
    const auto expected = [&, is_admin = admitted](bool linked) {
      return kAnyLinked && !is_admin ? absl::StatusCode::kPermissionDenied
                                     : kExpected[linked];
    };
    EXPECT_THAT(ListServices(client, server),
                StatusIs(expected(HAWSER_REFLECTION_LINKED)));
    EXPECT_THAT(GetServers(client, server),
                StatusIs(expected(HAWSER_CHANNELZ_LINKED)));
    // Health checks are open to everyone.
    EXPECT_THAT(client.Send(server, "/grpc.health.v1.Health/Check", Payload()),
                IsOk());
  }
}

TEST(DebugServicesTest, WithTlsOnlyAdminsAreServed) {
  net::TestAuthority authority;
  GrpcTransport transport({.credentials = authority.Make("w0")});
  absl::StatusOr<std::string> address = transport.Listen("127.0.0.1:0", {});
  ASSERT_THAT(address, IsOk());
  ExpectOnlyAdmins(authority, *address);
  auto server =
      store::StoreServer::Start({.credentials = authority.Make("w0")});
  ASSERT_THAT(server, IsOk());
  ExpectOnlyAdmins(authority, (*server)->address());
}

TEST(DebugServicesTest, WithoutTlsOnlyLoopbackIsServed) {
  GrpcTransport transport({.allow_insecure_network = true});
  const absl::Status worker = transport.Listen("0.0.0.0:0", {}).status();
  const absl::Status store =
      store::StoreServer::Start(
          {.host = "0.0.0.0", .allow_insecure_network = true})
          .status();
  for (const absl::Status& status : {worker, store}) {
    if (HAWSER_REFLECTION_LINKED || HAWSER_CHANNELZ_LINKED) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("//rpc/grpc:reflection")));
    } else {
      EXPECT_THAT(status, IsOk());
    }
  }
}

}  // namespace
}  // namespace hawser::rpc
