#include "autograd/graph_task.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "async/testing/manual_executor.h"
#include "async/testing/status_matchers.h"
#include "autograd/accumulate_grad.h"
#include "autograd/fake_node.h"
#include "autograd/gradcheck.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::DType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

using NodePtr = std::shared_ptr<Node>;

std::vector<Tensor> Scalar(double value) {
  return {Tensor::Scalar(value, {DType::kF64})};
}

NodePtr Fake(std::string name, std::vector<Edge> edges,
             std::vector<std::string>* log = nullptr) {
  return std::make_shared<FakeNode>(std::move(name), std::move(edges), log);
}

double GradOf(const Tensor& leaf) {
  return Grad(leaf).defined() ? *Grad(leaf).item<double>() : -1;
}

absl::Status ResultOf(const GraphTask& task) {
  const async::Future<void> done = task.done();
  if (!done.ready()) return absl::UnavailableError("not done");
  return done.result();
}

constexpr auto kNotDone = absl::StatusCode::kUnavailable;

// root --> join --> leaf, with two send functions that lead to `join` and a
// third that leads only to the leaf.
class GraphTaskTest : public testing::Test {
 protected:
  GraphTaskTest() {
    join_ = Fake("join", {GradEdge(leaf_)}, &log_);
    for (const char* name : {"send0", "send1"}) {
      sends_.push_back(Fake(name, {{join_, 0}}, &log_));
    }
    sends_.push_back(Fake("send2", {GradEdge(leaf_)}, &log_));
    root_ = Fake("root", {{join_, 0}}, &log_);
  }

  std::shared_ptr<GraphTask> MakeTask(GraphTaskOptions options = {}) {
    auto task = GraphTask::Create({{root_, 0}}, sends_, std::move(options));
    EXPECT_THAT(task, IsOk());
    return *std::move(task);
  }

  int CountRuns(const std::string& name) const {
    return static_cast<int>(std::count(log_.begin(), log_.end(), name));
  }

  std::vector<std::string> log_;
  const Tensor leaf_ = Variable({0}, {});
  NodePtr join_;
  NodePtr root_;
  std::vector<NodePtr> sends_;
};

TEST_F(GraphTaskTest, ExtraNodesMayBeFedInAnyOrder) {
  // 0, 1, 2: the sends; 3: the roots.
  std::vector<int> order = {0, 1, 2, 3};
  const double values[] = {1, 10, 100};
  do {
    log_.clear();
    ZeroGrad(leaf_);
    auto task = MakeTask();
    for (int event : order) {
      EXPECT_THAT(ResultOf(*task), StatusIs(kNotDone));
      if (event == 3) {
        ASSERT_THAT(task->Run(Scalar(1000)), IsOk());
      } else {
        ASSERT_THAT(task->Feed(sends_[event], Scalar(values[event])), IsOk());
      }
    }
    EXPECT_THAT(ResultOf(*task), IsOk());
    EXPECT_EQ(GradOf(leaf_), 1111);
    EXPECT_EQ(CountRuns("join"), 1);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(GraphTaskTest, ExtraNodesMayBeSkippedInAnyOrder) {
  for (int skipped = 0; skipped < 8; ++skipped) {
    std::vector<int> order = {0, 1, 2, 3};
    do {
      log_.clear();
      ZeroGrad(leaf_);
      auto task = MakeTask();
      double expected = 1000;
      for (int event : order) {
        if (event == 3) {
          ASSERT_THAT(task->Run(Scalar(1000)), IsOk());
        } else if ((skipped >> event) & 1) {
          ASSERT_THAT(task->Skip(sends_[event]), IsOk());
        } else {
          ASSERT_THAT(task->Feed(sends_[event], Scalar(1)), IsOk());
          expected += 1;
        }
      }
      EXPECT_THAT(ResultOf(*task), IsOk());
      EXPECT_EQ(GradOf(leaf_), expected);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(CountRuns("send" + std::to_string(i)),
                  1 - ((skipped >> i) & 1));
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_F(GraphTaskTest, NodesReachedOnlyFromSkippedNodesDoNotRun) {
  std::vector<std::string> log;
  const auto recv =
      std::make_shared<FakeNode>("recv", std::vector<Edge>{}, &log);
  recv->set_runs_without_gradients(true);
  const NodePtr send = Fake("send", {{recv, 0}, GradEdge(leaf_)}, &log);
  auto task = *GraphTask::Create({}, {send});
  ASSERT_THAT(task->Run({}), IsOk());
  ASSERT_THAT(task->Skip(send), IsOk());
  EXPECT_THAT(ResultOf(*task), IsOk());
  EXPECT_THAT(log, IsEmpty());
  EXPECT_FALSE(Grad(leaf_).defined());
}

TEST_F(GraphTaskTest, RecvFunctionRunsWithUndefinedGradients) {
  std::vector<std::string> log;
  const auto recv =
      std::make_shared<FakeNode>("recv", std::vector<Edge>{}, &log);
  recv->set_runs_without_gradients(true);
  const NodePtr send = Fake("send", {{recv, 0}}, &log);
  auto task = GraphTask::Create({}, {send});
  ASSERT_THAT((*task)->Run({}), IsOk());
  ASSERT_THAT((*task)->Feed(send, {Tensor()}), IsOk());
  EXPECT_THAT(ResultOf(**task), IsOk());
  EXPECT_THAT(log, ElementsAre("recv"));
}

TEST_F(GraphTaskTest, EmptyTaskIsDoneAfterRun) {
  auto task = *GraphTask::Create({}, {});
  EXPECT_THAT(ResultOf(*task), StatusIs(kNotDone));
  ASSERT_THAT(task->Run({}), IsOk());
  EXPECT_THAT(ResultOf(*task), IsOk());
}

TEST_F(GraphTaskTest, RootsWithoutANodeAreIgnored) {
  auto task = *GraphTask::Create({{}, {root_, 0}}, {});
  ASSERT_THAT(task->Run({Tensor(), Scalar(2)[0]}), IsOk());
  EXPECT_THAT(ResultOf(*task), IsOk());
  EXPECT_EQ(GradOf(leaf_), 2);
}

TEST_F(GraphTaskTest, NodeErrorEndsTheTask) {
  const NodePtr bad = std::make_shared<FakeNode>(
      "bad", std::vector{GradEdge(leaf_)}, 1,
      [](std::vector<Tensor>) -> absl::StatusOr<std::vector<Tensor>> {
        return absl::OutOfRangeError("no");
      });
  auto task = GraphTask::Create({{bad, 0}}, {sends_[2]});
  ASSERT_THAT((*task)->Run(Scalar(1)), IsOk());
  EXPECT_THAT(ResultOf(**task),
              StatusIs(absl::StatusCode::kOutOfRange, "bad: no"));
  // Later gradients are dropped.
  EXPECT_THAT((*task)->Feed(sends_[2], Scalar(1)), IsOk());
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_FALSE(Grad(leaf_).defined());
}

TEST_F(GraphTaskTest, ExceptionOfANodeOrHookEndsTheTask) {
  const NodePtr bad = std::make_shared<FakeNode>(
      "bad", std::vector{GradEdge(leaf_)}, 1,
      [](std::vector<Tensor>) -> absl::StatusOr<std::vector<Tensor>> {
        throw std::out_of_range("no such row");
      });
  auto task = GraphTask::Create({{bad, 0}}, {});
  ASSERT_THAT((*task)->Run(Scalar(1)), IsOk());
  EXPECT_THAT(ResultOf(**task),
              StatusIs(absl::StatusCode::kInternal, "bad threw no such row"));
  const NodePtr good = Fake("good", {GradEdge(leaf_)}, &log_);
  good->RegisterPreHook([](std::vector<Tensor>&) -> absl::Status { throw 3; });
  task = GraphTask::Create({{good, 0}}, {});
  ASSERT_THAT((*task)->Run(Scalar(1)), IsOk());
  EXPECT_THAT(ResultOf(**task), StatusIs(absl::StatusCode::kInternal,
                                         testing::HasSubstr("good threw")));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(GraphTaskTest, FailEndsTheTaskAndKeepsTheFirstError) {
  auto task = MakeTask();
  ASSERT_THAT(task->Feed(sends_[0], Scalar(1)), IsOk());
  task->Fail(absl::DataLossError("peer"));
  task->Fail(absl::AbortedError("later"));
  EXPECT_THAT(ResultOf(*task), StatusIs(absl::StatusCode::kDataLoss, "peer"));
  EXPECT_THAT(task->Run(Scalar(1)), IsOk());
  EXPECT_EQ(CountRuns("root"), 0);
  EXPECT_EQ(CountRuns("join"), 0);
}

TEST_F(GraphTaskTest, FailInsideANodeStopsTheNextNode) {
  std::shared_ptr<GraphTask> task;
  const NodePtr top = std::make_shared<FakeNode>(
      "top", std::vector<Edge>{{join_, 0}}, 1, [&](std::vector<Tensor> grads) {
        task->Fail(absl::DataLossError("rpc"));
        return std::vector<Tensor>{grads[0]};
      });
  task = *GraphTask::Create({{top, 0}}, {});
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  EXPECT_THAT(ResultOf(*task), StatusIs(absl::StatusCode::kDataLoss, "rpc"));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(GraphTaskTest, FeedInsideANode) {
  std::shared_ptr<GraphTask> task;
  const NodePtr top = std::make_shared<FakeNode>(
      "top", std::vector<Edge>{}, 1, [&](std::vector<Tensor>) {
        EXPECT_THAT(task->Feed(sends_[2], Scalar(5)), IsOk());
        return std::vector<Tensor>{};
      });
  task = *GraphTask::Create({{top, 0}}, {sends_[2]});
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  EXPECT_THAT(ResultOf(*task), IsOk());
  EXPECT_EQ(GradOf(leaf_), 5);
}

TEST_F(GraphTaskTest, CaptureReplacesAccumulation) {
  std::vector<std::string> log;
  ASSERT_THAT(RegisterHook(leaf_,
                           [&](const Tensor& g) -> absl::StatusOr<Tensor> {
                             log.push_back("hook");
                             return Scalar(*g.item<double>() + 1)[0];
                           }),
              IsOk());
  ASSERT_THAT(RegisterPostAccumulateHook(leaf_,
                                         [&](const Tensor&) {
                                           log.push_back("post");
                                           return absl::OkStatus();
                                         }),
              IsOk());
  Tensor captured;
  GraphTaskOptions options;
  options.capture = [&](const Tensor& variable, Tensor gradient) {
    EXPECT_TRUE(variable.is_same(leaf_));
    log.push_back("capture");
    return AddGradient(captured, std::move(gradient));
  };
  auto task = *GraphTask::Create({{root_, 0}}, {}, std::move(options));
  ASSERT_THAT(task->Run(Scalar(5)), IsOk());
  EXPECT_THAT(ResultOf(*task), IsOk());
  EXPECT_EQ(*captured.item<double>(), 6);
  EXPECT_FALSE(Grad(leaf_).defined());
  EXPECT_THAT(log, ElementsAre("hook", "capture", "post"));
}

TEST_F(GraphTaskTest, CaptureErrorEndsTheTask) {
  GraphTaskOptions options;
  options.capture = [](auto&&...) { return absl::AbortedError("full"); };
  auto task = *GraphTask::Create({{root_, 0}}, {}, std::move(options));
  ASSERT_THAT(task->Run(Scalar(5)), IsOk());
  EXPECT_THAT(ResultOf(*task), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(GraphTaskTest, RunsOnItsExecutor) {
  async::ManualExecutor executor;
  GraphTaskOptions options;
  options.executor = &executor;
  auto task = MakeTask(std::move(options));
  ASSERT_THAT(task->Run(Scalar(1000)), IsOk());
  for (const NodePtr& send : sends_) {
    ASSERT_THAT(task->Feed(send, Scalar(1)), IsOk());
  }
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_EQ(executor.num_queued(), 1u);
  executor.RunAll();
  EXPECT_THAT(ResultOf(*task), IsOk());
  EXPECT_EQ(GradOf(leaf_), 1003);
}

TEST_F(GraphTaskTest, ExecutorThatDropsItsWorkCancelsTheTask) {
  auto executor = std::make_unique<async::ManualExecutor>();
  GraphTaskOptions options;
  options.executor = executor.get();
  auto task = MakeTask(std::move(options));
  ASSERT_THAT(task->Run(Scalar(1000)), IsOk());
  executor.reset();
  EXPECT_THAT(ResultOf(*task), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(GraphTaskTest, DestroyedTaskIsCancelled) {
  auto task = MakeTask();
  const async::Future<void> done = task->done();
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  task.reset();
  ASSERT_TRUE(done.ready());
  EXPECT_THAT(done.result(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(GraphTaskTest, CancellingTheFutureFailsTheTask) {
  auto task = MakeTask();
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  task->done().Cancel();
  EXPECT_THAT(ResultOf(*task), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(task->Feed(sends_[0], Scalar(1)), IsOk());
  EXPECT_EQ(CountRuns("send0"), 0);
}

TEST_F(GraphTaskTest, CompletedTaskReleasesTheGraph) {
  auto task = *GraphTask::Create({{root_, 0}}, {});
  const std::weak_ptr<Node> root = root_;
  root_.reset();
  EXPECT_FALSE(root.expired());
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  EXPECT_TRUE(root.expired());
}

TEST_F(GraphTaskTest, SavedTensorsAreKeptOnlyOnRequest) {
  const auto* saving = static_cast<FakeNode*>(join_.get());
  GraphTaskOptions options;
  options.retain_graph = true;
  auto task = *GraphTask::Create({{root_, 0}}, {}, std::move(options));
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  EXPECT_EQ(saving->num_releases(), 0);
  task = *GraphTask::Create({{root_, 0}}, {});
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  EXPECT_EQ(saving->num_releases(), 1);
}

TEST_F(GraphTaskTest, TwoTasksOverOneGraphAreIndependent) {
  // Both tasks run at the same time. The second finds the scratch fields of the
  // nodes in use, and outlives the first.
  auto first = MakeTask();
  auto second = MakeTask();
  for (const NodePtr& send : sends_) {
    ASSERT_THAT(first->Feed(send, Scalar(1)), IsOk());
    ASSERT_THAT(second->Feed(send, Scalar(10)), IsOk());
  }
  auto third = MakeTask();
  ASSERT_THAT(first->Run(Scalar(1)), IsOk());
  EXPECT_THAT(ResultOf(*first), IsOk());
  EXPECT_EQ(GradOf(leaf_), 4);
  auto fourth = MakeTask();
  ASSERT_THAT(second->Run(Scalar(10)), IsOk());
  EXPECT_THAT(ResultOf(*second), IsOk());
  EXPECT_EQ(GradOf(leaf_), 44);
  for (const auto& task : {fourth, third}) {
    ASSERT_THAT(task->Run(Scalar(100)), IsOk());
    for (const NodePtr& send : sends_) {
      ASSERT_THAT(task->Skip(send), IsOk());
    }
    EXPECT_THAT(ResultOf(*task), IsOk());
  }
  EXPECT_EQ(GradOf(leaf_), 244);
}

TEST_F(GraphTaskTest, WaitingForReturnsUnfedNodes) {
  auto task = MakeTask();
  EXPECT_THAT(task->waiting_for(),
              ElementsAre(sends_[0], sends_[1], sends_[2]));
  ASSERT_THAT(task->Feed(sends_[1], Scalar(1)), IsOk());
  ASSERT_THAT(task->Skip(sends_[0]), IsOk());
  EXPECT_THAT(task->waiting_for(), ElementsAre(sends_[2]));
}

TEST_F(GraphTaskTest, RejectsMisuse) {
  EXPECT_THAT(GraphTask::Create({}, {nullptr}), StatusIs(kInvalidArgument));
  EXPECT_THAT(GraphTask::Create({}, {sends_[0], sends_[0]}),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(GraphTask::Create({{root_, 1}}, {}),
              StatusIs(kInvalidArgument, HasSubstr("root")));
  auto task = MakeTask();
  EXPECT_THAT(task->Run({}), StatusIs(kInvalidArgument));
  EXPECT_THAT(task->Feed(join_, Scalar(1)), StatusIs(kInvalidArgument));
  EXPECT_THAT(task->Feed(nullptr, Scalar(1)), StatusIs(kInvalidArgument));
  EXPECT_THAT(task->Feed(sends_[0], {}), StatusIs(kInvalidArgument));
  EXPECT_THAT(task->Feed(sends_[0], Scalar(1)), IsOk());
  EXPECT_THAT(task->Feed(sends_[0], Scalar(1)), StatusIs(kFailedPrecondition));
  EXPECT_THAT(task->Skip(sends_[0]), StatusIs(kFailedPrecondition));
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  EXPECT_THAT(task->Run(Scalar(1)), StatusIs(kFailedPrecondition));
}

TEST_F(GraphTaskTest, GradientOfTheWrongShapeIsAnError) {
  auto task = MakeTask();
  ASSERT_THAT(task->Run(Scalar(1)), IsOk());
  ASSERT_THAT(task->Feed(sends_[0], {Tensor::Zeros({7}, {DType::kF64})}),
              IsOk());
  EXPECT_THAT(ResultOf(*task), StatusIs(kInvalidArgument, HasSubstr("join")));
}

TEST_F(GraphTaskTest, ReachableFindsEachNodeOnce) {
  const NodePtr leaf = GradEdge(leaf_).node;
  const std::vector<NodePtr> starts = {root_, nullptr, sends_[0], root_};
  EXPECT_THAT(Reachable(starts), ElementsAre(root_, sends_[0], join_, leaf));
  EXPECT_THAT(ReachableLeaves(starts), ElementsAre(leaf));
  EXPECT_THAT(Reachable({}), IsEmpty());
}

}  // namespace
}  // namespace hawser::autograd
