// Calls an agent through a generated stub, as a client in any language would.

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "proto/rpc.grpc.pb.h"
#include "rpc/agent/agent.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/agent_test_fixture.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Function<Tensor(Tensor, double)> kScale{"test.Scale"};
constexpr Function<void()> kFail{"test.Fail"};
// A client's service config that enables gRPC's retries.
constexpr char kRetries[] = R"({"methodConfig": [{
    "name": [{}],
    "retryPolicy": {
      "maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
      "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]})";

class InteropTest : public testing::Test {
 protected:
  InteropTest() : job_([] { return std::make_unique<GrpcTransport>(); }) {
    EXPECT_THAT(job_.registry().Register(
                    kScale,
                    [](Tensor tensor, double factor) -> absl::StatusOr<Tensor> {
                      if (factor == 0) return absl::DataLossError("nothing");
                      for (int i = 0; i < tensor.num_elements(); ++i) {
                        tensor.data<float>()[i] *= static_cast<float>(factor);
                      }
                      return tensor;
                    }),
                IsOk());
    EXPECT_THAT(job_.registry().Register(kFail,
                                         [this] {
                                           ++num_failed_;
                                           return absl::UnavailableError("no");
                                         }),
                IsOk());
    job_.StartAll(1);
    stub_ = v1::WorkerService::NewStub(::grpc::CreateChannel(
        job_.agent(0).info().address, ::grpc::InsecureChannelCredentials()));
  }

  // A request of a client that found the agent in the store.
  v1::CallRequest Request(double factor) {
    v1::CallRequest request;
    v1::RequestHeader& header = *request.mutable_header();
    header.set_job(job_.agent(0).job());
    header.set_source("script");
    header.set_source_rank(-1);
    header.set_destination("w0");
    header.set_destination_incarnation(
        ToNumber(job_.agent(0).info().incarnation));
    request.set_function("test.Scale");
    request.set_signature("Tensor(Tensor, double)");
    v1::ValueList& arguments = *request.mutable_arguments();
    arguments.add_values()->set_tensor_index(0);
    arguments.add_values()->set_double_value(factor);
    v1::TensorHeader& tensor = *request.add_tensors();
    tensor.set_dtype(v1::DTYPE_F32);
    tensor.add_dims(2);
    const float elements[] = {1.5f, -2.0f};
    request.add_tensor_data(elements, sizeof(elements));
    return request;
  }

  std::atomic<int> num_failed_{0};
  TestJob job_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  ::grpc::ClientContext context_;
  v1::CallReply reply_;
};

// gRPC's own retries would rerun a failed call.
TEST_F(InteropTest, AClientThatRetriesRunsACallOnce) {
  ::grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kRetries);
  const auto stub = v1::WorkerService::NewStub(::grpc::CreateCustomChannel(
      job_.agent(0).info().address, ::grpc::InsecureChannelCredentials(),
      arguments));
  v1::CallRequest request = Request(1);
  request.set_function("test.Fail");
  request.set_signature("void()");
  request.clear_arguments();
  request.clear_tensors();
  request.clear_tensor_data();
  const ::grpc::Status status = stub->Call(&context_, request, &reply_);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(num_failed_, 1);
}

TEST_F(InteropTest, StubCallsARegisteredFunction) {
  const ::grpc::Status status = stub_->Call(&context_, Request(2), &reply_);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(reply_.results().values_size(), 1);
  EXPECT_EQ(reply_.results().values(0).tensor_index(), 0u);
  ASSERT_EQ(reply_.tensor_data_size(), 1);
  EXPECT_EQ(reply_.tensors(0).dims(0), 2);
  float elements[2];
  ASSERT_EQ(reply_.tensor_data(0).size(), sizeof(elements));
  std::memcpy(elements, reply_.tensor_data(0).data(), sizeof(elements));
  EXPECT_EQ(elements[0], 3.0f);
  EXPECT_EQ(elements[1], -4.0f);
}

TEST_F(InteropTest, StubSeesCodeMessageAndDetail) {
  const ::grpc::Status status = stub_->Call(&context_, Request(0), &reply_);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("nothing"));
  v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  v1::ErrorDetail detail;
  ASSERT_TRUE(detail.ParseFromString(details.details(0).value()));
  EXPECT_EQ(detail.worker(), "w0");
}

TEST_F(InteropTest, MessageForAnotherIncarnationIsRefused) {
  v1::CallRequest request = Request(2);
  request.mutable_header()->set_destination_incarnation(1);
  const ::grpc::Status status = stub_->Call(&context_, request, &reply_);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("0000000000000001"),
                    HasSubstr(ToString(job_.agent(0).info().incarnation))));
}

TEST_F(InteropTest, MessageForAnotherJobIsRefused) {
  v1::CallRequest request = Request(2);
  request.mutable_header()->set_job("other");
  EXPECT_EQ(stub_->Call(&context_, request, &reply_).error_code(),
            ::grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(InteropTest, InvalidNamesAreRejected) {
  v1::CallRequest request = Request(2);
  request.mutable_header()->set_source("a\nb");
  EXPECT_EQ(stub_->Call(&context_, request, &reply_).error_code(),
            ::grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace hawser::rpc
