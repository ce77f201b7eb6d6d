// Losses of workers, seen by one engine behind a host that the test controls.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/task_local.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/engine.h"
#include "dist_autograd/ids.h"
#include "dist_autograd/service_methods.h"
#include "gtest/gtest.h"
#include "proto/dist_autograd.pb.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

class EngineLossTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(engine_->Start(), IsOk()); }
  void TearDown() override { engine_->Stop(); }

  // The worker that takes the name and rank of `worker`.
  static rpc::WorkerInfo SuccessorOf(rpc::WorkerInfo worker) {
    worker.incarnation =
        rpc::Incarnation{rpc::ToNumber(worker.incarnation) + 1000};
    return worker;
  }
  static ContextId IdOf(const rpc::WorkerInfo& creator, uint64_t number) {
    return ContextId{static_cast<uint64_t>(creator.id.value()) << 48 | number};
  }
  void Lose(const rpc::WorkerInfo& worker) {
    host_.LoseWorker(worker);
    engine_->OnWorkerLost(worker, absl::UnavailableError("lost"));
  }
  // A request of `peer` without tensors, in a context of `creator`.
  absl::StatusOr<async::TaskContext> Receive(const rpc::WorkerInfo& peer,
                                             const rpc::WorkerInfo& creator,
                                             uint64_t number) {
    return engine_->OnReceiveRequest(
        peer,
        {.context_id = ToNumber(IdOf(creator, number)),
         .context_incarnation = creator.incarnation},
        {});
  }

  const rpc::WorkerInfo first_ = rpc::FakeServiceHost::MakeWorker(1);
  const rpc::WorkerInfo other_ = rpc::FakeServiceHost::MakeWorker(2);
  rpc::FakeServiceHost host_;
  const std::shared_ptr<Engine> engine_ =
      std::make_shared<Engine>(host_, DistAutogradOptions());
};

// The news of the loss may arrive after that of the successor.
TEST_F(EngineLossTest, LossEndsNoContextOfTheSuccessor) {
  const rpc::WorkerInfo successor = SuccessorOf(first_);
  ASSERT_THAT(Receive(first_, first_, 1), IsOk());
  ASSERT_THAT(Receive(successor, successor, 2), IsOk());
  Lose(first_);
  EXPECT_THAT(engine_->FindContext(IdOf(first_, 1)),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(engine_->FindContext(IdOf(successor, 2)), IsOk());
  EXPECT_THAT(Receive(successor, successor, 2), IsOk());
}

TEST_F(EngineLossTest, LossEndsNoPassWithTheSuccessor) {
  const auto context = engine_->CreateContext();
  ASSERT_THAT(context, IsOk());
  const rpc::WorkerInfo successor = SuccessorOf(first_);
  const Tensor leaf = Tensor::Full({1}, 3);
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  {
    const Engine::CurrentContext current(*context);
    ASSERT_THAT(engine_->OnSend(successor, std::vector<Tensor>{leaf}), IsOk());
  }
  const absl::StatusOr<Tensor> loss = autograd::Mul(leaf, leaf);
  ASSERT_THAT(loss, IsOk());
  // Waits for the gradient of the message.
  const async::Future<void> pass =
      engine_->Backward((*context)->id(), {*loss}, {});
  ASSERT_FALSE(pass.ready());
  Lose(first_);
  EXPECT_FALSE(pass.ready());
  Lose(successor);
  ASSERT_TRUE(pass.ready());
  EXPECT_THAT(pass.result(), StatusIs(absl::StatusCode::kUnavailable));
}

// The creator may be lost for this worker alone. A message that is not recorded
// would make it miss gradients, and not know.
TEST_F(EngineLossTest, MessagesOfAContextOfALostCreatorAreRefused) {
  absl::StatusOr<async::TaskContext> served = Receive(other_, first_, 1);
  ASSERT_THAT(served, IsOk());
  Lose(first_);
  EXPECT_THAT(Receive(other_, first_, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Receive(other_, first_, 2), StatusIs(absl::StatusCode::kAborted));
  // The reply, and calls of the function that runs.
  const async::TaskContext::Scope scope(*std::move(served));
  EXPECT_THAT(engine_->OnSend(other_, {}),
              StatusIs(absl::StatusCode::kAborted));
}

// The worker that would notify of the end is lost, and the creator cannot be
// asked to do so.
TEST_F(EngineLossTest, ContextWhoseCreatorIsOutOfReachIsCutOff) {
  absl::StatusOr<async::TaskContext> served = Receive(other_, first_, 1);
  ASSERT_THAT(served, IsOk());
  Lose(other_);
  auto asked = host_.TakeCall(kReparentContextsMethod);
  ASSERT_TRUE(asked.has_value());
  asked->SetReply(absl::UnavailableError("the store is out of reach"));
  const rpc::WorkerInfo third = rpc::FakeServiceHost::MakeWorker(3);
  EXPECT_THAT(Receive(third, first_, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Receive(third, first_, 2), IsOk());
  const async::TaskContext::Scope scope(*std::move(served));
  EXPECT_THAT(engine_->OnSend(third, {}), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(EngineLossTest, OnlyTheCreatorEndsAContextForGood) {
  ASSERT_THAT(Receive(other_, first_, 1), IsOk());
  ASSERT_THAT(Receive(other_, first_, 2), IsOk());
  v1::ReleaseContextRequest request;
  request.add_contexts(ToNumber(IdOf(first_, 1)));
  EXPECT_THAT(host_.Receive(kReleaseContextMethod, other_, request).Wait(),
              IsOk());
  EXPECT_THAT(Receive(other_, first_, 1), StatusIs(absl::StatusCode::kAborted));
  request.set_contexts(0, ToNumber(IdOf(first_, 2)));
  EXPECT_THAT(host_.Receive(kReleaseContextMethod, first_, request).Wait(),
              IsOk());
  EXPECT_THAT(Receive(other_, first_, 2), IsOk());
  EXPECT_EQ(engine_->num_contexts(), 0u);
}

TEST_F(EngineLossTest, MessagesOfAnEndedContextAreNotRecorded) {
  absl::StatusOr<async::TaskContext> served = Receive(other_, first_, 1);
  ASSERT_THAT(served, IsOk());
  engine_->ReleaseContext(IdOf(first_, 1));
  EXPECT_THAT(Receive(other_, first_, 1), IsOk());
  const async::TaskContext::Scope scope(*std::move(served));
  const auto sent = engine_->OnSend(other_, {});
  ASSERT_THAT(sent, IsOk());
  EXPECT_FALSE(sent->has_value());
}

}  // namespace
}  // namespace hawser::dist_autograd
