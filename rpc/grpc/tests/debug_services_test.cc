// Reflection and channelz are served only by processes that link them; with TLS
// only to admins.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "net/auth/peer_verification.h"
#include "net/testing/test_credentials.h"
#include "rpc/grpc/transport.h"
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
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

struct Answer {
  ::grpc::StatusCode code;
  std::string bytes;
};

using Channel = std::shared_ptr<::grpc::Channel>;

Channel Connect(const std::string& address) {
  return ::grpc::CreateChannel(address, ::grpc::InsecureChannelCredentials());
}

Answer Call(const Channel& channel, const std::string& method,
            const std::string& request) {
  ::grpc::GenericStub stub(channel);
  ::grpc::ClientContext context;
  ::grpc::CompletionQueue queue;
  const ::grpc::Slice slice(request);
  auto reader = stub.PrepareUnaryCall(&context, method,
                                      ::grpc::ByteBuffer(&slice, 1), &queue);
  reader->StartCall();
  ::grpc::ByteBuffer reply;
  ::grpc::Status status;
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  ::grpc::Slice bytes;
  if (reply.Valid()) (void)reply.DumpToSingleSlice(&bytes);
  return {
      status.error_code(),
      std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size())};
}

Answer ListServices(const Channel& channel) {
  // ServerReflectionRequest{list_services: ""}.
  return Call(channel,
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              std::string("\x3a\x00", 2));
}

Answer GetServers(const Channel& channel) {
  return Call(channel, "/grpc.channelz.v1.Channelz/GetServers", "");
}

constexpr ::grpc::StatusCode kExpected[] = {::grpc::StatusCode::UNIMPLEMENTED,
                                            ::grpc::StatusCode::OK};

TEST(DebugServicesTest, WorkersServeWhatIsLinked) {
  GrpcTransport transport;
  const auto handler = [](std::unique_ptr<IncomingCall>) {};
  absl::StatusOr<std::string> address = transport.Listen(
      "127.0.0.1:0",
      {{.path = "/hawser.v1.WorkerService/Call", .handler = handler},
       {.path = "/hawser.v1.RRefService/Create", .handler = handler},
       {.path = "/hawser.v1.WorkerService/Heartbeat", .handler = handler}});
  ASSERT_THAT(address, IsOk());
  const Answer services = ListServices(Connect(*address));
  EXPECT_EQ(services.code, kExpected[HAWSER_REFLECTION_LINKED]);
  if (HAWSER_REFLECTION_LINKED) {
    EXPECT_THAT(services.bytes, HasSubstr("hawser.v1.WorkerService"));
    EXPECT_THAT(services.bytes, HasSubstr("hawser.v1.RRefService"));
    EXPECT_THAT(services.bytes, HasSubstr("grpc.health.v1.Health"));
  }
  EXPECT_EQ(GetServers(Connect(*address)).code,
            kExpected[HAWSER_CHANNELZ_LINKED]);
}

TEST(DebugServicesTest, StoresServeWhatIsLinked) {
  auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ListServices(Connect((*server)->address())).code,
            kExpected[HAWSER_REFLECTION_LINKED]);
  EXPECT_EQ(GetServers(Connect((*server)->address())).code,
            kExpected[HAWSER_CHANNELZ_LINKED]);
}

// Checks which certificates a server of worker "w0" accepts.
void ExpectOnlyAdmins(net::TestAuthority& authority,
                      const std::string& address) {
  constexpr bool kAnyLinked =
      HAWSER_REFLECTION_LINKED || HAWSER_CHANNELZ_LINKED;
  const std::pair<std::vector<std::string>, bool> kCases[] = {
      {{}, false}, {{"ps", "observer"}, false}, {{"ps", "admin"}, true}};
  for (const auto& [roles, admitted] : kCases) {
    const net::PeerVerification verification(authority.Make("eye", roles),
                                             "w0");
    const Channel channel = verification.CreateChannel(address, {});
    const auto expected = [&, is_admin = admitted](bool linked) {
      return kAnyLinked && !is_admin ? ::grpc::StatusCode::PERMISSION_DENIED
                                     : kExpected[linked];
    };
    EXPECT_EQ(ListServices(channel).code, expected(HAWSER_REFLECTION_LINKED));
    EXPECT_EQ(GetServers(channel).code, expected(HAWSER_CHANNELZ_LINKED));
    // Health checks are open to everyone.
    EXPECT_EQ(Call(channel, "/grpc.health.v1.Health/Check", "").code,
              ::grpc::StatusCode::OK);
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
