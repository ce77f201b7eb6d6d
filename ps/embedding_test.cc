#include "ps/embedding.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/schedule_spec.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "rpc/agent/call_observer.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The calls of one worker to others.
class CallCounter final : public rpc::CallObserver {
 public:
  std::unique_ptr<Call> Begin(const rpc::CallStart& start) override {
    if (start.side != rpc::CallStart::Side::kClient) return nullptr;
    const async::MutexLock lock(&mutex_);
    calls_.emplace_back(start.method);
    ++under_way_;
    return std::make_unique<CallUnderWay>(this);
  }

  // The calls since the last Take.
  std::vector<std::string> Take() {
    const async::MutexLock lock(&mutex_);
    return std::exchange(calls_, {});
  }

  void WaitForReplies() {
    const async::MutexLock lock(&mutex_);
    while (under_way_ > 0) ended_.Wait(&mutex_);
  }

 private:
  class CallUnderWay final : public Call {
   public:
    explicit CallUnderWay(CallCounter* counter) : counter_(counter) {}
    void End(const rpc::CallEnd&) override {
      const async::MutexLock lock(&counter_->mutex_);
      --counter_->under_way_;
      counter_->ended_.NotifyAll();
    }

   private:
    CallCounter* const counter_;
  };

  async::Mutex mutex_;
  async::CondVar ended_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
};

// Worker 0 trains a table with learning rate 1 on worker 1.
class EmbeddingTest : public testing::Test {
 protected:
  void SetUp() override {
    job_.StartAll(2, [this](int rank, rpc::AgentOptions& options) {
      options.default_timeout = absl::Seconds(5);
      if (rank == 0) options.observers.push_back(calls_);
      options.services.push_back(std::make_unique<TableService>());
    });
    table_ = std::make_unique<Table>(
        *Table::Create(job_.agent(0),
                       {.name = "t",
                        .width = 2,
                        .rule = {"SGD", {{"lr", 1}}},
                        .initializer = Initializer::Constant(1)},
                       {"w1"}));
  }

  static Tensor Keys(const std::vector<int64_t>& keys, const Shape& shape) {
    return Tensor::FromVector(keys, shape);
  }

  std::vector<float> Row(int64_t key) {
    return table_->Pull(Keys({key}, {1})).Wait()->ToVector<float>();
  }

  // Adds the product of all elements with `weights` to the loss, and runs the
  // backward pass.
  void Backward(const Tensor& rows, const Tensor& weights) {
    const Tensor loss = *autograd::Sum(*autograd::Mul(rows, weights));
    ASSERT_THAT(autograd::Backward(loss), IsOk());
  }

  const std::shared_ptr<CallCounter> calls_ = std::make_shared<CallCounter>();
  rpc::TestJob job_;
  std::unique_ptr<Table> table_;
};

TEST_F(EmbeddingTest, BackwardPushesTheGradientOfEachRow) {
  Embedding embedding(*table_);
  const Tensor rows = *embedding.Forward(Keys({4, 5, 4}, {3}));
  EXPECT_TRUE(autograd::RequiresGrad(rows));
  EXPECT_EQ(rows.shape(), Shape({3, 2}));
  Backward(rows,
           Tensor::FromVector(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
  ASSERT_THAT(embedding.Flush(), IsOk());
  EXPECT_EQ(Row(4), (std::vector<float>{1 - 6, 1 - 8}));
  EXPECT_EQ(Row(5), (std::vector<float>{1 - 3, 1 - 4}));
}

TEST_F(EmbeddingTest, SumAndMeanOfBags) {
  const Tensor keys = Keys({4, 5, 4, 6}, {2, 2});
  const Tensor weights =
      Tensor::FromVector(std::vector<float>{1, 2, 3, 4}, {2, 2});
  Embedding sum(*table_, {.pooling = Pooling::kSum});
  const Tensor sums = *sum.Forward(keys);
  EXPECT_EQ(sums.ToVector<float>(), (std::vector<float>{2, 2, 2, 2}));
  Backward(sums, weights);
  ASSERT_THAT(sum.Flush(), IsOk());
  EXPECT_EQ(Row(4), (std::vector<float>{1 - 4, 1 - 6}));
  EXPECT_EQ(Row(5), (std::vector<float>{0, -1}));
  EXPECT_EQ(Row(6), (std::vector<float>{-2, -3}));

  Embedding mean(*table_, {.pooling = Pooling::kMean});
  const Tensor means = *mean.Forward(keys);
  EXPECT_EQ(means.ToVector<float>(), (std::vector<float>{-1.5, -3, -2.5, -4}));
  Backward(means, weights);
  ASSERT_THAT(mean.Flush(), IsOk());
  EXPECT_EQ(Row(4), (std::vector<float>{-3 - 2, -5 - 3}));
  EXPECT_EQ(Row(5), (std::vector<float>{-0.5, -2}));
}

TEST_F(EmbeddingTest, ALookUpSeesTheUpdatesOfEarlierPasses) {
  Embedding embedding(*table_);
  for (int step = 0; step < 50; ++step) {
    const Tensor rows = *embedding.Forward(Keys({9}, {1}));
    ASSERT_EQ(rows.ToVector<float>(),
              std::vector<float>(2, static_cast<float>(1 - step)));
    Backward(rows, Tensor::Ones({1, 2}));
  }
}

TEST_F(EmbeddingTest, PushesSendTheStepOfTheirLookUp) {
  const auto table = Table::Create(
      job_.agent(0),
      {.name = "halved",
       .width = 2,
       .rule = {"SGD", {{"lr", 1}}},
       .initializer = Initializer::Constant(1),
       .schedule = optim::ScheduleSpec::Step({.step_size = 10, .gamma = 0.5})},
      {"w1"});
  ASSERT_THAT(table, IsOk());
  Embedding embedding(*table);
  const auto train = [&] {
    const Tensor rows = *embedding.Forward(Keys({4}, {1}));
    embedding.SetStep(0);
    Backward(rows, Tensor::Ones({1, 2}));
    return rows.ToVector<float>()[0];
  };
  embedding.SetStep(10);
  EXPECT_EQ(train(), 1);
  embedding.SetStep(20);
  EXPECT_EQ(train(), 1 - 0.5);
  // By the number of the row's updates.
  embedding.SetStep(std::nullopt);
  EXPECT_EQ(train(), 1 - 0.5 - 0.25);
  EXPECT_EQ(train(), 1 - 0.5 - 0.25 - 1);
}

TEST_F(EmbeddingTest, PushesUnderWayAreAllAppliedAtAFlush) {
  Embedding embedding(*table_, {.max_pushes_under_way = 8});
  for (int step = 0; step < 50; ++step) {
    Backward(*embedding.Forward(Keys({9}, {1})), Tensor::Ones({1, 2}));
  }
  ASSERT_THAT(embedding.Flush(), IsOk());
  EXPECT_EQ(Row(9), (std::vector<float>{1 - 50, 1 - 50}));
}

TEST_F(EmbeddingTest, WithoutRecordingNothingIsCreatedOrPushed) {
  Embedding embedding(*table_);
  const autograd::NoGradGuard no_grad;
  const Tensor rows = *embedding.Forward(Keys({4}, {1}));
  EXPECT_FALSE(autograd::RequiresGrad(rows));
  EXPECT_EQ(rows.ToVector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(table_->Size().Wait()->rows, 0);
}

TEST_F(EmbeddingTest, TheErrorOfAPushIsReturnedOnce) {
  Embedding embedding(*table_);
  const Tensor rows = *embedding.Forward(Keys({4}, {1}));
  ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  Backward(rows, Tensor::Ones({1, 2}));
  EXPECT_THAT(embedding.Flush(), StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("worker 'w1'")));
  EXPECT_THAT(embedding.Flush(), IsOk());
}

TEST_F(EmbeddingTest, ChangedKeysDoNotChangeTheGraph) {
  Embedding embedding(*table_);
  Tensor keys = Keys({4}, {1});
  const Tensor rows = *embedding.Forward(keys);
  keys.data<int64_t>()[0] = 5;
  Backward(rows, Tensor::Ones({1, 2}));
  ASSERT_THAT(embedding.Flush(), IsOk());
  EXPECT_EQ(Row(4), (std::vector<float>{0, 0}));
  EXPECT_EQ(Row(5), (std::vector<float>{1, 1}));
}

// The pull is sent before the step computes, and taking its rows sends nothing.
TEST_F(EmbeddingTest, PrefetchedRowsTravelWhileTheStepComputes) {
  Embedding embedding(*table_);
  const Tensor rows = *embedding.Forward(Keys({4}, {1}));
  calls_->Take();
  auto next = embedding.Prefetch(Keys({5, 5}, {2}));
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(calls_->Take(), ElementsAre("hawser.v1.TableService.Pull"));
  Backward(rows, Tensor::Ones({1, 2}));
  EXPECT_THAT(calls_->Take(), ElementsAre("hawser.v1.TableService.Push"));
  const Tensor next_rows = *embedding.Forward(*std::move(next));
  EXPECT_THAT(calls_->Take(), IsEmpty());
  EXPECT_TRUE(autograd::RequiresGrad(next_rows));
  Backward(next_rows, Tensor::Ones({2, 2}));
  ASSERT_THAT(embedding.Flush(), IsOk());
  EXPECT_EQ(Row(4), (std::vector<float>{0, 0}));
  EXPECT_EQ(Row(5), (std::vector<float>{-1, -1}));
}

TEST_F(EmbeddingTest, PrefetchedRowsMissTheUpdateOfTheStepBefore) {
  Embedding embedding(*table_);
  auto next = embedding.Prefetch(Keys({9}, {1}));
  ASSERT_THAT(next, IsOk());
  // Weights are 1, 1 (the second prefetch is before the first push), 0, -1, ...
  for (int step = 0; step < 20; ++step) {
    const Tensor rows = *embedding.Forward(*std::move(next));
    const float expected = step == 0 ? 1 : static_cast<float>(2 - step);
    EXPECT_EQ(rows.ToVector<float>(), std::vector<float>(2, expected)) << step;
    next = embedding.Prefetch(Keys({9}, {1}));
    ASSERT_THAT(next, IsOk());
    calls_->WaitForReplies();
    Backward(rows, Tensor::Ones({1, 2}));
  }
  ASSERT_THAT(embedding.Flush(), IsOk());
  EXPECT_EQ(Row(9), (std::vector<float>{1 - 20, 1 - 20}));
}

TEST_F(EmbeddingTest, PrefetchedMeansOfBags) {
  Embedding mean(*table_, {.pooling = Pooling::kMean});
  Tensor keys = Keys({4, 5}, {1, 2});
  auto next = mean.Prefetch(keys);
  ASSERT_THAT(next, IsOk());
  keys.data<int64_t>()[0] = 6;
  const Tensor means = *mean.Forward(*std::move(next));
  EXPECT_EQ(means.ToVector<float>(), (std::vector<float>{1, 1}));
  Backward(means, Tensor::Ones({1, 2}));
  ASSERT_THAT(mean.Flush(), IsOk());
  EXPECT_EQ(Row(4), (std::vector<float>{0.5, 0.5}));
  EXPECT_EQ(Row(6), (std::vector<float>{1, 1}));
}

TEST_F(EmbeddingTest, APrefetchWithoutRecordingCreatesNothing) {
  Embedding embedding(*table_);
  const autograd::NoGradGuard no_grad;
  auto next = embedding.Prefetch(Keys({4}, {1}));
  ASSERT_THAT(next, IsOk());
  EXPECT_FALSE(autograd::RequiresGrad(*embedding.Forward(*std::move(next))));
  EXPECT_EQ(table_->Size().Wait()->rows, 0);
}

TEST_F(EmbeddingTest, TheErrorOfAPrefetchIsThatOfForward) {
  Embedding embedding(*table_);
  auto next = embedding.Prefetch(Tensor::Ones({2}));
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(embedding.Forward(*std::move(next)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  next = embedding.Prefetch(Keys({4}, {1}));
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(embedding.Forward(*std::move(next)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
}

}  // namespace
}  // namespace hawser::ps
