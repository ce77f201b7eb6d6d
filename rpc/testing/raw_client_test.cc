#include "rpc/testing/raw_client.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "rpc/functions/function.h"
#include "rpc/grpc/transport.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/echo_server.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

inline constexpr Function<int64_t(int64_t, std::string)> kRepeat{"test.Repeat"};

// Runs over a transport and over gRPC's own client.
class RawClientTest : public testing::TestWithParam<bool> {
 protected:
  // The header and body that arrive from Call.
  v1::CallRequest Parse(const absl::StatusOr<std::string>& echoed) {
    v1::CallRequest request;
    EXPECT_THAT(echoed, IsOk());
    if (echoed.ok()) {
      EXPECT_TRUE(request.ParseFromString(*echoed));
    }
    return request;
  }

  EchoServer server_;
  RawClient client_ = GetParam() ? RawClient(std::make_unique<GrpcTransport>())
                                 : RawClient(RawClient::GrpcOptions{});
};

TEST_P(RawClientTest, BytesArriveAsTheyAre) {
  for (const std::string& bytes :
       {std::string(), std::string("\x0a\x7f", 2), std::string(100'000, 'x')}) {
    EXPECT_THAT(client_.Send({.address = server_.address()}, EchoServer::kEcho,
                             Payload(bytes)),
                IsOkAndHolds(bytes));
  }
  EXPECT_THAT(
      client_.Send({.address = server_.address()}, "/t.T/Other", Payload()),
      StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(RawClientTest, MessagesHaveTheGivenHeader) {
  const v1::CallRequest request = Parse(client_.Call(
      server_.address(),
      {.job = "job",
       .source = "a",
       .source_rank = WorkerId(3),
       .source_incarnation = Incarnation{5},
       .destination = "b",
       .destination_incarnation = Incarnation{6},
       .call_id = 7,
       .autograd = std::nullopt},
      EchoServer::kEcho, RawClient::FunctionCall(kRepeat, 2, "x")));
  EXPECT_EQ(request.header().job(), "job");
  EXPECT_EQ(request.header().source(), "a");
  EXPECT_EQ(request.header().source_rank(), 3);
  EXPECT_EQ(request.header().source_incarnation(), 5u);
  EXPECT_EQ(request.header().destination(), "b");
  EXPECT_EQ(request.header().destination_incarnation(), 6u);
  EXPECT_EQ(request.header().call_id(), 7u);
  EXPECT_EQ(request.function(), "test.Repeat");
  EXPECT_EQ(request.signature(), kRepeat.Signature());
  ASSERT_EQ(request.arguments().values_size(), 2);
  EXPECT_EQ(request.arguments().values(0).int_value(), 2);
  EXPECT_EQ(request.arguments().values(1).string_value(), "x");
}

TEST_P(RawClientTest, MessagesOfAWorkerAreNumbered) {
  const WorkerInfo source = {.name = "a",
                             .id = WorkerId(3),
                             .incarnation = Incarnation{5},
                             .address = ""};
  const WorkerInfo to = {.name = "b",
                         .id = WorkerId(4),
                         .incarnation = Incarnation{6},
                         .address = server_.address()};
  for (uint64_t i = 1; i <= 2; ++i) {
    const v1::RequestHeader header =
        Parse(client_.Call(source, to, EchoServer::kEcho, "")).header();
    EXPECT_EQ(header.job(), "default");
    EXPECT_EQ(header.source(), "a");
    EXPECT_EQ(header.destination(), "b");
    EXPECT_EQ(header.call_id(), i);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RawClientTest, testing::Bool(),
                         [](const auto& tested) {
                           return tested.param ? "Transport" : "Grpc";
                         });

}  // namespace
}  // namespace hawser::rpc
