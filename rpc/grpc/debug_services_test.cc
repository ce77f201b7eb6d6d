// Reflection and channelz are served by processes that link them, and by no
// other.

#include <memory>
#include <string>

#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"
#include "store/store_server.h"

#ifndef HAWSER_REFLECTION_LINKED
#define HAWSER_REFLECTION_LINKED 0
#endif
#ifndef HAWSER_CHANNELZ_LINKED
#define HAWSER_CHANNELZ_LINKED 0
#endif

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::testing::HasSubstr;

struct Answer {
  ::grpc::StatusCode code;
  std::string bytes;
};

Answer Call(const std::string& address, const std::string& method,
            const std::string& request) {
  ::grpc::GenericStub stub(
      ::grpc::CreateChannel(address, ::grpc::InsecureChannelCredentials()));
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

Answer ListServices(const std::string& address) {
  // ServerReflectionRequest{list_services: ""}.
  return Call(address,
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              std::string("\x3a\x00", 2));
}

Answer GetServers(const std::string& address) {
  return Call(address, "/grpc.channelz.v1.Channelz/GetServers", "");
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
  const Answer services = ListServices(*address);
  EXPECT_EQ(services.code, kExpected[HAWSER_REFLECTION_LINKED]);
  if (HAWSER_REFLECTION_LINKED) {
    EXPECT_THAT(services.bytes, HasSubstr("hawser.v1.WorkerService"));
    EXPECT_THAT(services.bytes, HasSubstr("hawser.v1.RRefService"));
    EXPECT_THAT(services.bytes, HasSubstr("grpc.health.v1.Health"));
  }
  EXPECT_EQ(GetServers(*address).code, kExpected[HAWSER_CHANNELZ_LINKED]);
}

TEST(DebugServicesTest, StoresServeWhatIsLinked) {
  auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ListServices((*server)->address()).code,
            kExpected[HAWSER_REFLECTION_LINKED]);
  EXPECT_EQ(GetServers((*server)->address()).code,
            kExpected[HAWSER_CHANNELZ_LINKED]);
}

}  // namespace
}  // namespace hawser::rpc
