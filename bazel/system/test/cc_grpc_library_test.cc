#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "bazel/system/test/clock.grpc.pb.h"
#include "bazel/system/test/echo.grpc.pb.h"
#include "bazel/system/test/echo.pb.h"
#include "bazel/system/test/echo_mock.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::build_test {
namespace {

using ::testing::DoAll;
using ::testing::Return;
using ::testing::SetArgPointee;

class EchoService final : public Echo::Service {
  grpc::Status Say(grpc::ServerContext* /*context*/, const EchoRequest* request,
                   EchoReply* reply) override {
    reply->set_text(request->text());
    return grpc::Status::OK;
  }
};

TEST(CcGrpcLibraryTest, GeneratedServiceAnswersGeneratedStub) {
  EchoService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);

  const auto stub = Echo::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  EchoRequest request;
  request.set_text("ahoy");
  EchoReply reply;
  const grpc::Status status = stub->Say(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.text(), "ahoy");
}

TEST(CcGrpcLibraryTest, GeneratedMockStandsInForStub) {
  MockEchoStub stub;
  EchoReply canned;
  canned.set_text("canned");
  EXPECT_CALL(stub, Say).WillOnce(
      DoAll(SetArgPointee<2>(canned), Return(grpc::Status::OK)));
  grpc::ClientContext context;
  EchoReply reply;
  EXPECT_TRUE(stub.Say(&context, EchoRequest(), &reply).ok());
  EXPECT_EQ(reply.text(), "canned");
}

TEST(CcGrpcLibraryTest, WithoutGrpcOnlyMessagesAndServicesComeTogether) {
  EXPECT_EQ(std::string(Clock::service_full_name()), "hawser.build_test.Clock");
}

}  // namespace
}  // namespace hawser::build_test
