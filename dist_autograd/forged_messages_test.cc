// Messages about contexts that other workers made or that have ended, sent by
// the test in the name of worker 1 to worker 0.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "dist_autograd/context.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_autograd/engine.h"
#include "dist_autograd/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dist_autograd.pb.h"
#include "proto/rpc.pb.h"
#include "proto/tensor.pb.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/raw_client.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

inline constexpr rpc::Function<int64_t(Tensor)> kSize{
    "forged_messages_test.Size"};

class ForgedMessagesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(
                    kSize, [](const Tensor& t) { return t.num_elements(); }),
                IsOk());
    job_.StartAll(3, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<DistAutogradService>());
    });
  }
  void TearDown() override { job_.StopAll(); }

  Engine& engine() {
    return *job_.agent(0).service<DistAutogradService>()->engine();
  }
  // A context of worker 1.
  ContextId ForeignContext(uint64_t number) const {
    return ContextId{uint64_t{1} << 48 | number};
  }

  // Calls kSize with a tensor that requires a gradient, recorded as message
  // `message` of `context`.
  absl::Status Call(ContextId context, rpc::Incarnation creator,
                    uint64_t message, v1::DType dtype = v1::DTYPE_F32) {
    v1::CallRequest request;
    request.set_function(std::string(kSize.name()));
    request.set_signature(kSize.Signature());
    request.mutable_arguments()->add_values()->set_tensor_index(0);
    v1::TensorHeader& tensor = *request.add_tensors();
    tensor.set_dtype(dtype);
    tensor.add_dims(1);
    tensor.set_requires_grad(true);
    request.add_tensor_data(std::string(4, '\0'));
    const rpc::WorkerInfo& from = job_.agent(1).info();
    const rpc::WorkerInfo& to = job_.agent(0).info();
    return caller_
        .Call(
            to.address,
            {.job = job_.agent(0).job(),
             .source = from.name,
             .source_rank = from.id,
             .source_incarnation = from.incarnation,
             .destination = to.name,
             .destination_incarnation = to.incarnation,
             .call_id = ++last_call_,
             .autograd = rpc::AutogradMetadata{.context_id = ToNumber(context),
                                               .context_incarnation = creator,
                                               .message_id = message}},
            rpc::RawClient::kCallPath, request.SerializeAsString())
        .status();
  }

  // Calls a method of worker 0 in the name of `from`.
  absl::Status Send(int from, const std::string& method,
                    const std::string& request) {
    return caller_
        .Call(job_.agent(from).info(), job_.agent(0).info(),
              "/hawser.v1.DistAutogradService/" + method, request)
        .status();
  }
  absl::Status Release(int from, ContextId context) {
    v1::ReleaseContextRequest request;
    request.add_contexts(ToNumber(context));
    return Send(from, "ReleaseContext", request.SerializeAsString());
  }

  rpc::TestJob job_;
  rpc::RawClient caller_{job_.network().NewTransport()};
  uint64_t last_call_ = 1'000'000;
};

TEST_F(ForgedMessagesTest, MessageWithTheIdOfAnotherWorkerIsRefused) {
  const rpc::Incarnation creator = job_.agent(1).info().incarnation;
  EXPECT_THAT(Call(ForeignContext(1), creator, uint64_t{1} << 48 | 7), IsOk());
  EXPECT_THAT(Call(ForeignContext(1), creator, 7),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("came from worker 'w1'")));
}

TEST_F(ForgedMessagesTest, OnlyFloatingPointTensorsRequireGradients) {
  EXPECT_THAT(Call(ForeignContext(1), job_.agent(1).info().incarnation,
                   uint64_t{1} << 48 | 7, v1::DTYPE_I32),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("requires a gradient")));
}

TEST_F(ForgedMessagesTest, OnlyThoseWhoBroughtAContextEndIt) {
  const ContextId id = ForeignContext(1);
  ASSERT_THAT(Call(id, job_.agent(1).info().incarnation, uint64_t{1} << 48 | 7),
              IsOk());
  EXPECT_THAT(Release(2, id), IsOk());
  EXPECT_THAT(engine().FindContext(id), IsOk());
  EXPECT_THAT(Release(1, id), IsOk());
  EXPECT_THAT(engine().FindContext(id), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ForgedMessagesTest, StrangerDoesNotEndTheCreatorsContext) {
  const auto context = engine().CreateContext();
  ASSERT_THAT(context, IsOk());
  EXPECT_THAT(Release(1, (*context)->id()), IsOk());
  EXPECT_THAT(engine().FindContext((*context)->id()), IsOk());
}

TEST_F(ForgedMessagesTest, OnlyParticipantsAbortAPass) {
  const auto context = engine().CreateContext();
  ASSERT_THAT(context, IsOk());
  const auto abort_of = [&](int from) {
    const rpc::WorkerInfo& root = job_.agent(0).info();
    v1::AbortPassRequest request;
    v1::BackwardPassId& pass = *request.mutable_pass();
    pass.set_context(ToNumber((*context)->id()));
    pass.set_context_incarnation(rpc::ToNumber(root.incarnation));
    pass.mutable_root()->set_worker(root.id.value());
    pass.mutable_root()->set_incarnation(rpc::ToNumber(root.incarnation));
    pass.set_number(1);
    request.mutable_error()->set_code(
        static_cast<int>(absl::StatusCode::kInternal));
    return Send(from, "AbortPass", request.SerializeAsString());
  };
  EXPECT_THAT(abort_of(1), StatusIs(absl::StatusCode::kPermissionDenied,
                                    HasSubstr("'w1' takes no part")));
  ASSERT_TRUE((*context)->AddTarget(job_.agent(1).info()));
  EXPECT_THAT(abort_of(1), IsOk());
}

// Worker 1 lost the worker from which it has the context, and asks its creator
// to be notified of the end.
TEST_F(ForgedMessagesTest, CreatorSaysWhichContextsHaveEnded) {
  const auto open = engine().CreateContext();
  const auto ended = engine().CreateContext();
  ASSERT_THAT(open, IsOk());
  ASSERT_THAT(ended, IsOk());
  engine().ReleaseContext((*ended)->id());
  v1::ReparentContextsRequest request;
  request.add_contexts(ToNumber((*open)->id()));
  request.add_contexts(ToNumber((*ended)->id()));
  const absl::StatusOr<std::string> bytes =
      caller_.Call(job_.agent(1).info(), job_.agent(0).info(),
                   "/hawser.v1.DistAutogradService/ReparentContexts",
                   request.SerializeAsString());
  ASSERT_THAT(bytes, IsOk());
  v1::ReparentContextsReply reply;
  ASSERT_TRUE(reply.ParseFromString(*bytes));
  EXPECT_THAT(reply.ended(), ElementsAre(ToNumber((*ended)->id())));
  // It is notified of the end of the other.
  const Context::Remains remains = (*open)->Release();
  ASSERT_EQ(remains.targets.size(), 1u);
  EXPECT_EQ(remains.targets[0].name, "w1");
}

}  // namespace
}  // namespace hawser::dist_autograd
