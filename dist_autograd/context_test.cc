#include "dist_autograd/context.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "autograd/variable.h"
#include "dist_autograd/backward_pass.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {
namespace {

using async::IsOk;
using async::StatusIs;

rpc::WorkerInfo WorkerNamed(const char* name, int id) {
  return {name, rpc::WorkerId(id), rpc::Incarnation{1}, ""};
}

rpc::WorkerRun RunWithId(int id) {
  return {rpc::WorkerId(id), rpc::Incarnation{1}};
}

class ContextTest : public testing::Test {
 protected:
  const std::shared_ptr<Context> context_ =
      std::make_shared<Context>(ContextId{1}, RunWithId(0));
};

TEST_F(ContextTest, GradientsOfOneLeafAddUp) {
  const Tensor leaf = Tensor::Zeros({2});
  EXPECT_FALSE(context_->gradient(leaf).defined());
  EXPECT_THAT(context_->AddGradient(leaf, Tensor::Ones({2})), IsOk());
  EXPECT_THAT(context_->AddGradient(leaf, Tensor::Full({2}, 2)), IsOk());
  const auto gradients = context_->gradients();
  ASSERT_THAT(gradients, IsOk());
  ASSERT_EQ(gradients->size(), 1u);
  EXPECT_TRUE((*gradients)[0].variable.is_same(leaf));
  EXPECT_THAT(FindGradient(*gradients, leaf).ToVector<float>(),
              testing::ElementsAre(3, 3));
  EXPECT_FALSE(FindGradient(*gradients, Tensor::Zeros({2})).defined());
}

TEST_F(ContextTest, FirstGradientIsNotCopied) {
  const Tensor leaf = Tensor::Zeros({64});
  Tensor gradient = Tensor::Ones({64});
  const void* memory = gradient.raw_data();
  EXPECT_THAT(context_->AddGradient(leaf, std::move(gradient)), IsOk());
  EXPECT_EQ(context_->gradient(leaf).raw_data(), memory);
}

TEST_F(ContextTest, SourceIsNotNotifiedOfTheEnd) {
  context_->AddSource(WorkerNamed("a", 1));
  context_->AddTarget(WorkerNamed("a", 1));
  context_->AddTarget(WorkerNamed("b", 2));
  EXPECT_EQ(context_->peers().size(), 2u);
  EXPECT_TRUE(context_->HasSource(RunWithId(1)));
  EXPECT_FALSE(context_->HasSource(RunWithId(2)));
  const std::vector<rpc::WorkerInfo> targets = context_->Release().targets;
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].name, "b");
}

TEST_F(ContextTest, IncarnationsOfOneWorkerAreSeparate) {
  rpc::WorkerInfo again = WorkerNamed("a", 1);
  again.incarnation = rpc::Incarnation{2};
  context_->AddSource(WorkerNamed("a", 1));
  EXPECT_TRUE(context_->AddTarget(again));
  EXPECT_EQ(context_->peers().size(), 2u);
  EXPECT_TRUE(context_->HasSource(RunWithId(1)));
  EXPECT_FALSE(context_->HasSource(RunOf(again)));
  const std::vector<rpc::WorkerInfo> targets = context_->Release().targets;
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].incarnation, again.incarnation);
}

// Also if it was a source before.
// Decides whether the loss of a worker fails a running pass.
TEST_F(ContextTest, IncarnationThatTookNoPartIsNotAPeer) {
  rpc::WorkerInfo predecessor = WorkerNamed("a", 1);
  predecessor.incarnation = rpc::Incarnation{77};
  context_->AddTarget(WorkerNamed("a", 1));
  EXPECT_TRUE(context_->HasPeer(RunWithId(1)));
  EXPECT_FALSE(context_->HasPeer(RunOf(predecessor)));
}

TEST_F(ContextTest, ReparentedWorkerIsNotifiedOfTheEnd) {
  context_->AddSource(WorkerNamed("a", 1));
  EXPECT_TRUE(context_->Reparent(WorkerNamed("a", 1)));
  const std::vector<rpc::WorkerInfo> targets = context_->Release().targets;
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].name, "a");
}

TEST_F(ContextTest, MessagesBecomeSendAndRecvFunctions) {
  const Tensor leaf = Tensor::Zeros({2});
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  context_->RecordSend(AutogradMessageId{5}, WorkerNamed("a", 1), {leaf});
  const Tensor received = Tensor::Zeros({2});
  context_->RecordRecv(AutogradMessageId{6}, WorkerNamed("a", 1), {received});
  EXPECT_TRUE(autograd::RequiresGrad(received));
  EXPECT_EQ(context_->messages().sends.size(), 1u);
  EXPECT_EQ(context_->messages().recvs.size(), 1u);
}

TEST_F(ContextTest, RecvFunctionFailsOutsideAPass) {
  const Tensor received = Tensor::Zeros({2});
  context_->RecordRecv(AutogradMessageId{6}, WorkerNamed("a", 1), {received});
  const std::shared_ptr<RecvFunction> recv = context_->messages().recvs[0];
  EXPECT_THAT(recv->Apply({Tensor::Ones({2})}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A failed pass may still run a node after the next pass has started.
TEST_F(ContextTest, RecvFunctionRunsOnlyForItsOwnPass) {
  const Tensor received = Tensor::Zeros({2});
  context_->RecordRecv(AutogradMessageId{6}, WorkerNamed("a", 1), {received});
  const std::shared_ptr<RecvFunction> recv = context_->messages().recvs[0];
  BackwardPassOptions options;
  options.id = {context_->id(), RunWithId(1), 1};
  const auto next = context_->JoinPass(options, [] { return nullptr; });
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(recv->Apply({Tensor::Ones({2})}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  next->pass->Fail(absl::AbortedError("end"));
}

TEST_F(ContextTest, ReleasedContextIsEmptyAndRecordsNothing) {
  const Tensor leaf = Tensor::Zeros({2});
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  EXPECT_TRUE(context_->AddTarget(WorkerNamed("a", 1)));
  context_->RecordSend(AutogradMessageId{5}, WorkerNamed("a", 1), {leaf});
  EXPECT_EQ(context_->Release().pass, nullptr);
  EXPECT_FALSE(context_->AddTarget(WorkerNamed("a", 1)));
  EXPECT_FALSE(context_->Reparent(WorkerNamed("a", 1)));
  context_->RecordSend(AutogradMessageId{7}, WorkerNamed("a", 1), {leaf});
  EXPECT_TRUE(context_->messages().sends.empty());
  EXPECT_TRUE(context_->peers().empty());
  EXPECT_THAT(context_->gradients(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(context_->AddGradient(leaf, Tensor::Ones({2})),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Passes without messages, to test the order of their numbers.
class ContextBackwardPassTest : public ContextTest {
 protected:
  // Until its end, a context and its last passes hold each other.
  ~ContextBackwardPassTest() override { context_->Release(); }

  // Runs `meanwhile`, as another thread would, while the pass is created.
  absl::StatusOr<Context::Participation> Join(
      int root, uint64_t number, absl::FunctionRef<void()> meanwhile = [] {}) {
    BackwardPassOptions options;
    options.id = {context_->id(), RunWithId(root), number};
    return context_->JoinPass(options, [&] {
      meanwhile();
      return nullptr;
    });
  }
};

TEST_F(ContextBackwardPassTest, MessagesOfOnePassJoinIt) {
  auto first = Join(3, 1);
  auto second = Join(3, 1);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(first->is_new);
  EXPECT_FALSE(second->is_new);
  EXPECT_EQ(first->pass, second->pass);
  first->pass->Fail(absl::AbortedError("end"));
}

TEST_F(ContextBackwardPassTest, PassOfAnotherRootIsRefused) {
  auto first = Join(3, 1);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(Join(4, 1), StatusIs(absl::StatusCode::kFailedPrecondition));
  first->pass->Fail(absl::AbortedError("end"));
  auto other = Join(4, 1);
  ASSERT_THAT(other, IsOk());
  other->pass->Fail(absl::AbortedError("end"));
}

TEST_F(ContextBackwardPassTest, LaterPassOfTheRootFailsAnEarlierOne) {
  auto first = Join(3, 1);
  auto second = Join(3, 2);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(first->pass->done().result(),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Join(3, 1), StatusIs(absl::StatusCode::kAborted));
  second->pass->Fail(absl::UnavailableError("end"));
  EXPECT_THAT(Join(3, 2), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ContextBackwardPassTest, PassThatStartedMeanwhileIsJoined) {
  std::shared_ptr<BackwardPass> faster;
  const auto slow = Join(3, 1, [&] { faster = Join(3, 1)->pass; });
  ASSERT_THAT(slow, IsOk());
  EXPECT_FALSE(slow->is_new);
  EXPECT_EQ(slow->pass, faster);
  faster->Fail(absl::AbortedError("end"));
}

// A second start would wait for gradients that arrived before.
TEST_F(ContextBackwardPassTest, PassThatEndedMeanwhileDoesNotRestart) {
  std::shared_ptr<BackwardPass> ended;
  const auto late = Join(3, 1, [&] {
    ended = Join(3, 1)->pass;
    ended->Start({});
    EXPECT_THAT(ended->Receive(RunWithId(3), {}, {}, true).result(), IsOk());
  });
  ASSERT_THAT(late, IsOk());
  EXPECT_FALSE(late->is_new);
  EXPECT_EQ(late->pass, ended);
  EXPECT_EQ(context_->pass(), nullptr);
}

TEST_F(ContextBackwardPassTest, PassThatFailedMeanwhileDoesNotRestart) {
  EXPECT_THAT(
      Join(3, 1,
           [&] { Join(3, 1)->pass->Fail(absl::UnavailableError("end")); }),
      StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(context_->pass(), nullptr);
}

TEST_F(ContextBackwardPassTest, ContextReleasedMeanwhileDoesNotStartAPass) {
  EXPECT_THAT(Join(3, 1, [&] { EXPECT_EQ(context_->Release().pass, nullptr); }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(context_->pass(), nullptr);
}

TEST_F(ContextBackwardPassTest, PassRefusedMeanwhileStaysRefused) {
  EXPECT_THAT(Join(3, 1,
                   [&] {
                     EXPECT_EQ(context_->RefusePass(
                                   {context_->id(), RunWithId(3), 1},
                                   absl::UnavailableError("elsewhere")),
                               nullptr);
                   }),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(context_->pass(), nullptr);
}

TEST_F(ContextBackwardPassTest, PassRefusedBeforeItArrivesStaysRefused) {
  EXPECT_EQ(context_->RefusePass({context_->id(), RunWithId(3), 1},
                                 absl::UnavailableError("elsewhere")),
            nullptr);
  EXPECT_THAT(Join(3, 1), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(context_->pass(), nullptr);
}

TEST_F(ContextBackwardPassTest, PassesCountFromOne) {
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Join(3, 0), invalid);
  context_->RefusePass({context_->id(), RunWithId(3), 0},
                       absl::AbortedError("refused"));
  EXPECT_THAT(Join(3, 0), invalid);
}

// A peer may name roots that do not exist.
TEST_F(ContextBackwardPassTest, RefusedPassesOfTooManyRootsAreForgotten) {
  const int num_roots = 2 * static_cast<int>(Context::kMaxRoots);
  for (int root = 1; root <= num_roots; ++root) {
    EXPECT_EQ(context_->RefusePass({context_->id(), RunWithId(root), 1},
                                   absl::UnavailableError("elsewhere")),
              nullptr);
  }
  size_t num_remembered = 0;
  std::shared_ptr<BackwardPass> running;
  for (int root = 1; root <= num_roots; ++root) {
    const auto joined = Join(root, 1);
    if (absl::IsUnavailable(joined.status())) ++num_remembered;
    if (joined.ok()) running = joined->pass;
  }
  EXPECT_EQ(num_remembered, Context::kMaxRoots);
  ASSERT_NE(running, nullptr);
  running->Fail(absl::AbortedError("end"));
}

}  // namespace
}  // namespace hawser::dist_autograd
