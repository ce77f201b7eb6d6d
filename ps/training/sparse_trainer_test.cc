#include "ps/training/sparse_trainer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "autograd/variable.h"
#include "data/metrics.h"
#include "data/tabular/sample_batches.h"
#include "data/tabular/synthetic_ratings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/loss.h"
#include "nn/module.h"
#include "optim/adagrad.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "optim/sgd.h"
#include "ps/storage/consistency.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/training/sparse_model.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;
using ::testing::Lt;

// A number that is added to all predictions.
class Offset final : public nn::Module {
 public:
  Offset() {
    RegisterParameter("value", &value);
    HAWSER_CHECK(autograd::SetRequiresGrad(value).ok()) << "a leaf";
  }

  Tensor value = Tensor::Full({1}, 2);
};

// An offset and the product of a user's and an item's row of one table.
class Products final : public SparseModel {
 public:
  std::vector<TableSpec> tables() const override {
    return {{.name = "rows",
             .width = width_,
             .rule = optim::Adagrad({.lr = 0.2}),
             .initializer = Initializer::Normal(0.5, 0.3),
             .schedule = schedule_}};
  }
  nn::Module* dense() override { return &offset_; }
  optim::RuleSpec dense_rule() const override {
    return optim::Sgd({.lr = 0.05});
  }
  absl::StatusOr<std::vector<Tensor>> Keys(
      const data::SampleBatch& batch) const override {
    // Items after the users.
    Tensor keys = *batch.keys.Clone();
    for (int64_t i = 0; i < batch.size(); ++i) {
      keys.data<int64_t>()[2 * i + 1] += 1'000'000;
    }
    return std::vector<Tensor>(num_key_tensors_, keys);
  }
  absl::StatusOr<Tensor> Forward(const std::vector<Tensor>& rows,
                                 const data::SampleBatch&) const override {
    seen_.push_back(rows[0].ToVector<float>()[0]);
    ASSIGN_OR_RETURN(const Tensor user, autograd::Select(rows[0], 1, 0));
    ASSIGN_OR_RETURN(const Tensor item, autograd::Select(rows[0], 1, 1));
    ASSIGN_OR_RETURN(const Tensor product, autograd::Mul(user, item));
    ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(product, {1}, true));
    return autograd::Add(sum, offset_.value);
  }
  absl::StatusOr<Tensor> Loss(const Tensor& predictions,
                              const std::vector<Tensor>&,
                              const data::SampleBatch& batch) const override {
    return nn::MseLoss(predictions, batch.labels);
  }

  float offset() const { return *offset_.value.item<float>(); }
  // The first number of the rows of each step.
  const std::vector<float>& seen() const { return seen_; }
  void set_width(int64_t width) { width_ = width; }
  void set_schedule(const optim::ScheduleSpec& schedule) {
    schedule_ = schedule;
  }
  void set_num_key_tensors(size_t count) { num_key_tensors_ = count; }

 private:
  mutable std::vector<float> seen_;
  Offset offset_;
  int64_t width_ = 6;
  optim::ScheduleSpec schedule_;
  size_t num_key_tensors_ = 1;
};

data::SampleBatches Batches(data::SampleBatchesOptions options) {
  options.batch_samples = 64;
  options.test_every = 10;
  return *data::SampleBatches::Create(
      std::make_unique<data::SyntheticRatings>(data::SyntheticRatingsOptions{
          .num_samples = 30'000, .num_users = 100, .num_items = 50}),
      options);
}

// Ten steps with the same two rows.
data::SampleBatches EqualBatches() {
  return *data::SampleBatches::Create(
      std::make_unique<data::SyntheticRatings>(data::SyntheticRatingsOptions{
          .num_samples = 20, .num_users = 1, .num_items = 1}),
      {.batch_samples = 2});
}

absl::Status Ignore(int64_t, double) { return absl::OkStatus(); }

// Workers "w0" and "w1" train on "w2" and "w3".
class SparseTrainerTest : public testing::Test {
 protected:
  void SetUp() override { StartJob(); }

  // Starts a new job, without tables.
  void StartJob() {
    std::filesystem::remove_all(directory_);
    for (auto& model : models_) model = std::make_unique<Products>();
    job_ = std::make_unique<rpc::TestJob>();
    job_->StartAll(4, [this](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<TableService>(
          TableServiceOptions{.snapshot_directory = directory_}));
    });
  }

  std::unique_ptr<SparseTrainer> Create(int rank,
                                        SparseTrainerOptions options) {
    options.servers = servers_;
    auto trainer =
        SparseTrainer::Create(job_->agent(rank), *models_[rank], options);
    EXPECT_THAT(trainer, IsOk());
    return *std::move(trainer);
  }

  // Returns the error for the test samples after two trainers have trained.
  double TrainTogether(const Consistency& consistency) {
    std::vector<std::unique_ptr<SparseTrainer>> trainers;
    for (const int rank : {0, 1}) {
      trainers.push_back(
          Create(rank, {.consistency = consistency, .num_trainers = 2}));
    }
    EXPECT_GT(TestRmse(*trainers[0]), 0.9);
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::future<absl::Status>> parts;
      for (const int rank : {0, 1}) {
        parts.push_back(std::async(std::launch::async, [&, rank] {
          return trainers[rank]->Train(Batches({.shuffle_samples = 10'000,
                                                .seed = epoch,
                                                .num_replicas = 2,
                                                .rank = rank}),
                                       Ignore);
        }));
      }
      for (auto& part : parts) EXPECT_THAT(part.get(), IsOk());
    }
    for (auto& trainer : trainers) EXPECT_THAT(trainer->Leave(), IsOk());
    return TestRmse(*trainers[0]);
  }

  double TestRmse(SparseTrainer& trainer) {
    const auto result = trainer.Predict(Batches({.test = true}));
    EXPECT_THAT(result, IsOk());
    EXPECT_EQ(result->labels.size(), 3000u);
    EXPECT_THAT(data::Rmse(result->ideal, result->labels),
                IsOkAndHolds(testing::DoubleNear(0.5, 0.02)));
    return *data::Rmse(result->predictions, result->labels);
  }

  const std::string directory_ =
      absl::StrCat(testing::TempDir(), "/sparse_trainer");
  std::vector<std::string> servers_ = {"w2", "w3"};
  std::unique_ptr<rpc::TestJob> job_;
  // Of each trainer.
  std::unique_ptr<Products> models_[2];
};

TEST_F(SparseTrainerTest, TwoTrainersReachTheNoise) {
  EXPECT_LT(TrainTogether(Consistency::Asynchronous()), 0.55);
}

TEST_F(SparseTrainerTest, TrainersOfBoundedStalenessReachTheNoise) {
  EXPECT_LT(TrainTogether(Consistency::BoundedStaleness(2)), 0.55);
}

TEST_F(SparseTrainerTest, SynchronousTrainingDoesNotDependOnTimingOrServers) {
  const double first = TrainTogether(Consistency::Synchronous());
  EXPECT_LT(first, 0.55);
  servers_ = {"w3"};
  StartJob();
  EXPECT_EQ(TrainTogether(Consistency::Synchronous()), first);
}

TEST_F(SparseTrainerTest, AClockedStepSeesTheUpdateOfTheStepBefore) {
  const auto trainer =
      Create(0, {.consistency = Consistency::BoundedStaleness(0)});
  ASSERT_THAT(trainer->Train(EqualBatches(), Ignore), IsOk());
  const std::vector<float>& seen = models_[0]->seen();
  ASSERT_EQ(seen.size(), 10u);
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_NE(seen[i], seen[i - 1]) << i;
}

TEST_F(SparseTrainerTest, SchedulesGoByTheStepsOfTheTrainer) {
  // The rate is zero from step 5 on.
  models_[0]->set_schedule(optim::ScheduleSpec::Polynomial({.total_steps = 5}));
  const auto trainer = Create(
      0, {.consistency = Consistency::BoundedStaleness(0), .first_step = 3});
  ASSERT_THAT(trainer->Train(EqualBatches(), Ignore), IsOk());
  const std::vector<float>& seen = models_[0]->seen();
  ASSERT_EQ(seen.size(), 10u);
  for (size_t i = 1; i < seen.size(); ++i) {
    // The update of step i + 2.
    EXPECT_EQ(seen[i] != seen[i - 1], i + 2 < 5) << i;
  }
}

TEST_F(SparseTrainerTest, EachStepIsReported) {
  const auto trainer = Create(0, {.max_pushes_under_way = 0});
  int64_t steps = 0;
  int64_t samples = 0;
  double first = 0;
  double last = 0;
  ASSERT_THAT(trainer->Train(Batches({}),
                             [&](int64_t n, double loss) {
                               if (steps == 0) first = loss;
                               last = loss;
                               ++steps;
                               samples += n;
                               return absl::OkStatus();
                             }),
              IsOk());
  EXPECT_EQ(samples, 27'000);
  EXPECT_EQ(steps, (27'000 + 63) / 64);
  EXPECT_GT(first, 0.8);
  EXPECT_LT(last, 0.6);
}

TEST_F(SparseTrainerTest, AnErrorOfTheReportEndsTheTraining) {
  const auto trainer = Create(0, {.max_pushes_under_way = 4});
  int steps = 0;
  EXPECT_THAT(trainer->Train(Batches({}),
                             [&](int64_t, double) {
                               return ++steps < 3
                                          ? absl::OkStatus()
                                          : absl::CancelledError("stop");
                             }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(steps, 3);
}

TEST_F(SparseTrainerTest, PredictionsCreateNoRows) {
  const auto trainer = Create(0, {.max_pushes_under_way = 4});
  TestRmse(*trainer);
  const auto table = Table::Open(job_->agent(0), "rows", servers_);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->Size().Wait()->rows, 0);
}

// Up to the order in which the servers get look-ups ahead and pushes.
TEST_F(SparseTrainerTest, ARestoredTrainerGoesOnAsTheSavedOneWould) {
  const auto trainer = Create(0, {.max_pushes_under_way = 0});
  ASSERT_THAT(trainer->Save("new"), IsOk());
  ASSERT_THAT(trainer->Train(Batches({.seed = 1}), Ignore), IsOk());
  ASSERT_THAT(trainer->Save("first", {.base = "new"}), IsOk());
  const double saved = TestRmse(*trainer);
  ASSERT_THAT(trainer->Train(Batches({.seed = 2}), Ignore), IsOk());
  const double expected = TestRmse(*trainer);
  EXPECT_LT(expected, saved - 0.02);
  EXPECT_NE(models_[0]->offset(), 2);

  auto restored = SparseTrainer::Restore(
      job_->agent(1), *models_[1],
      {.servers = servers_, .max_pushes_under_way = 0}, "first");
  ASSERT_THAT(restored, IsOk());
  EXPECT_NE(models_[1]->offset(), 2);
  EXPECT_EQ(TestRmse(**restored), saved);
  ASSERT_THAT((*restored)->Train(Batches({.seed = 2}), Ignore), IsOk());
  EXPECT_NEAR(TestRmse(**restored), expected, 0.01);

  EXPECT_THAT(SparseTrainer::Restore(job_->agent(1), *models_[1],
                                     {.servers = servers_}, "second"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("second")));
}

TEST_F(SparseTrainerTest, ASnapshotOfAnotherModelIsRefused) {
  ASSERT_THAT(Create(0, {.max_pushes_under_way = 0})->Save("first"), IsOk());
  models_[0]->set_width(7);
  EXPECT_THAT(
      SparseTrainer::Restore(job_->agent(0), *models_[0], {.servers = servers_},
                             "first"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("table 'rows' of the snapshot 'first' has another")));
}

TEST_F(SparseTrainerTest, AModelNeedsKeysForEachTable) {
  const auto trainer = Create(0, {.max_pushes_under_way = 0});
  models_[0]->set_num_key_tensors(2);
  EXPECT_THAT(trainer->Train(Batches({}), Ignore),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 tables and keys for 2")));
}

}  // namespace
}  // namespace hawser::ps
