// Calls of a registered function with malformed arguments: headers of tensors
// that lie, and values that are nested too deeply.

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "proto/tensor.pb.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/raw_client.h"
#include "rpc/wire/call_body.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/wire_traits.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// Nests as deeply as its sender likes.
struct Tree {
  std::vector<Tree> children;
};

template <>
struct WireTraits<Tree> {
  static std::string TypeName() { return "test.Tree"; }
  static absl::Status Encode(Encoder&, const Tree&) {
    return absl::UnimplementedError("not sent");
  }
  static absl::StatusOr<Tree> Decode(Decoder& decoder) {
    RETURN_IF_ERROR(decoder.EnterList());
    Tree tree;
    while (!decoder.AtEnd()) {
      ASSIGN_OR_RETURN(Tree child, Decode(decoder));
      tree.children.push_back(std::move(child));
    }
    RETURN_IF_ERROR(decoder.Leave());
    return tree;
  }
};

namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::Tensor;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr Function<int64_t(Tensor)> kSize{"malformed_arguments_test.Size"};
constexpr Function<int64_t(Tree)> kGrow{"malformed_arguments_test.Grow"};

class MalformedArgumentsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kSize,
                                         [this](const Tensor& t) {
                                           ++num_runs_;
                                           return t.num_elements();
                                         }),
                IsOk());
    ASSERT_THAT(job_.registry().Register(kGrow,
                                         [this](const Tree&) {
                                           ++num_runs_;
                                           return int64_t{0};
                                         }),
                IsOk());
    job_.StartOne(0);
  }

  // A valid call of kSize, with two numbers.
  v1::CallRequest CallOfSize() const {
    v1::CallRequest request = CallOf(kSize);
    request.mutable_arguments()->add_values()->set_tensor_index(0);
    v1::TensorHeader& tensor = *request.add_tensors();
    tensor.set_dtype(v1::DTYPE_F32);
    tensor.add_dims(2);
    request.add_tensor_data(std::string(8, '\0'));
    return request;
  }
  template <class Signature>
  v1::CallRequest CallOf(const Function<Signature>& function) const {
    v1::CallRequest request;
    request.set_function(std::string(function.name()));
    request.set_signature(function.Signature());
    return request;
  }

  absl::Status Send(std::string body) {
    return caller_
        .Call({.name = "client",
               .id = WorkerId(),
               .incarnation = Incarnation{1001},
               .address = ""},
              job_.agent(0).info(), RawClient::kCallPath, std::move(body))
        .status();
  }
  absl::Status Send(const v1::CallRequest& request) {
    return Send(request.SerializeAsString());
  }
  absl::Status SendTree(int depth) {
    Encoder encoder;
    for (int i = 0; i < depth; ++i) encoder.BeginList();
    for (int i = 0; i < depth; ++i) encoder.EndList();
    // protobuf would refuse to build it.
    return Send(EncodeCallBody({.function = kGrow.name(),
                                .signature = kGrow.Signature(),
                                .arguments = encoder.TakeValues()}));
  }

  std::atomic<int> num_runs_{0};
  TestJob job_;
  RawClient caller_{job_.network().NewTransport()};
};

TEST_F(MalformedArgumentsTest, TensorsWhoseHeadersLieAreRefused) {
  ASSERT_THAT(Send(CallOfSize()), IsOk());
  ASSERT_EQ(num_runs_, 1);
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const std::vector<std::vector<int64_t>> lies = {
      {3},                                       // More than there is.
      {1},                                       // Less.
      {int64_t{1} << 40},                        // Terabytes.
      {-2},                                      //
      {-1, -2},                                  // Their product is right.
      {kHuge, kHuge},                            // The product overflows.
      {int64_t{1} << 32, int64_t{1} << 32, 2},   // To 0.
      {int64_t{1} << 62, 4, 2},                  // Likewise, in bytes.
      {std::numeric_limits<int64_t>::min(), 0},  //
      std::vector<int64_t>(100'000, 1),          // Too many dimensions.
  };
  for (const std::vector<int64_t>& dims : lies) {
    v1::CallRequest request = CallOfSize();
    request.mutable_tensors(0)->clear_dims();
    for (const int64_t dim : dims) request.mutable_tensors(0)->add_dims(dim);
    EXPECT_THAT(Send(request),
                AnyOf(StatusIs(absl::StatusCode::kInvalidArgument),
                      StatusIs(absl::StatusCode::kInternal)))
        << dims[0];
  }
  v1::CallRequest dtype = CallOfSize();
  dtype.mutable_tensors(0)->set_dtype(static_cast<v1::DType>(77));
  EXPECT_FALSE(Send(dtype).ok());
  v1::CallRequest no_data = CallOfSize();
  no_data.clear_tensor_data();
  EXPECT_FALSE(Send(no_data).ok());
  v1::CallRequest no_header = CallOfSize();
  no_header.clear_tensors();
  EXPECT_FALSE(Send(no_header).ok());
  v1::CallRequest other_index = CallOfSize();
  other_index.mutable_arguments()->mutable_values(0)->set_tensor_index(1);
  EXPECT_THAT(Send(other_index), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(num_runs_, 1);
  EXPECT_THAT(Send(CallOfSize()), IsOk());
}

TEST_F(MalformedArgumentsTest, ValuesThatNestTooDeeplyAreRefused) {
  ASSERT_THAT(SendTree(Decoder::kMaxDepth - 1), IsOk());
  ASSERT_EQ(num_runs_, 1);
  for (const int depth : {Decoder::kMaxDepth, 20'000}) {
    EXPECT_THAT(SendTree(depth), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr(std::string(kGrow.name()))))
        << depth;
  }
  EXPECT_EQ(num_runs_, 1);
}

}  // namespace
}  // namespace hawser::rpc
