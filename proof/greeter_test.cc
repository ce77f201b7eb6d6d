#include <grpcpp/grpcpp.h>
#include <hwy/highway.h>
#include <zlib.h>

#include <dnnl.hpp>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/flags/flag.h"
#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proof/greeter.grpc.pb.h"
#include "proof/greeter.pb.h"
#include "proof/greeter_mock.grpc.pb.h"

ABSL_FLAG(int, proof, 1, "x");

namespace hawser::proof {
namespace {

class Service final : public Greeter::Service {
  grpc::Status Greet(grpc::ServerContext*, const Hello* request,
                     Hello* reply) override {
    reply->set_name(absl::StrCat("hello ", request->name()));
    return grpc::Status::OK;
  }
};

TEST(GreeterTest, AnswersOverLoopback) {
  Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  auto stub = Greeter::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  Hello request, reply;
  request.set_name("x");
  ASSERT_TRUE(stub->Greet(&context, request, &reply).ok());
  EXPECT_THAT(reply.name(), testing::HasSubstr("hello"));
  absl::BitGen gen;
  absl::flat_hash_map<std::string, int> map{{"a", absl::Uniform(gen, 0, 9)}};
  nlohmann::json json = map.at("a");
  absl::StatusOr<std::string> text = json.dump();
  EXPECT_TRUE(text.ok());
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  EXPECT_NE(zlibVersion(), nullptr);
  EXPECT_GT(absl::Now(), absl::UnixEpoch());
  EXPECT_EQ(absl::GetFlag(FLAGS_proof), 1);
}

}  // namespace
}  // namespace hawser::proof
