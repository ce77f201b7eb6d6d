// Training of sparse models on tables: a logistic regression on real data, and
// a step with rows in a table and dense parameters under a distributed
// optimizer.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/variable.h"
#include "data/tabular/libsvm_reader.h"
#include "data/tabular/sample_batches.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gtest/gtest.h"
#include "nn/loss.h"
#include "optim/ftrl.h"
#include "optim/sgd.h"
#include "ps/embedding.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "rpc/functions/function.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

inline constexpr rpc::Function<Tensor()> kMakeWeights{"sparse.MakeWeights"};

// All samples of a libsvm file, in batches.
absl::StatusOr<std::vector<data::SampleBatch>> ReadBatches(
    const std::string& path, int64_t batch_samples) {
  ASSIGN_OR_RETURN(const int64_t width, data::LibsvmWidth(path));
  ASSIGN_OR_RETURN(auto reader, data::LibsvmReader::Open(path, width));
  ASSIGN_OR_RETURN(auto samples,
                   data::SampleBatches::Create(
                       std::move(reader), {.batch_samples = batch_samples}));
  std::vector<data::SampleBatch> batches;
  while (true) {
    ASSIGN_OR_RETURN(auto batch, samples.Next());
    if (!batch.has_value()) return batches;
    batches.push_back(*std::move(batch));
  }
}

// Trains on the batches whose number is `part` modulo `parts`.
absl::Status TrainLogisticRegression(
    ps::Embedding weights, const std::vector<data::SampleBatch>& batches,
    size_t part, size_t parts, int epochs) {
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (size_t i = part; i < batches.size(); i += parts) {
      ASSIGN_OR_RETURN(const Tensor logits, weights.Forward(batches[i].keys));
      ASSIGN_OR_RETURN(const Tensor loss,
                       nn::BceWithLogitsLoss(logits, batches[i].labels));
      RETURN_IF_ERROR(autograd::Backward(loss));
    }
  }
  return weights.Flush();
}

absl::StatusOr<double> Accuracy(ps::Embedding weights,
                                const std::vector<data::SampleBatch>& batches) {
  const autograd::NoGradGuard no_grad;
  int64_t right = 0;
  int64_t total = 0;
  for (const data::SampleBatch& batch : batches) {
    ASSIGN_OR_RETURN(const Tensor logits, weights.Forward(batch.keys));
    for (int64_t i = 0; i < batch.size(); ++i) {
      right += (logits.data<float>()[i] > 0) ==
               (batch.labels.data<float>()[i] > 0.5f);
    }
    total += batch.size();
  }
  return static_cast<double>(right) / static_cast<double>(total);
}

class SparseTrainingTest : public testing::Test {
 protected:
  void StartWorkers(int count) {
    job_.StartAll(count, [](int, rpc::AgentOptions& options) {
      AddServices(options);
      options.services.push_back(std::make_unique<ps::TableService>());
    });
  }

  rpc::TestJob job_;
};

// Two trainers on three servers.
TEST_F(SparseTrainingTest, LogisticRegressionOfMushrooms) {
  const char* directory = std::getenv("HAWSER_AGARICUS_DIR");
  if (directory == nullptr) {
    GTEST_SKIP() << "HAWSER_AGARICUS_DIR does not name the directory of "
                    "agaricus.train.libsvm and agaricus.test.libsvm";
  }
  const auto train =
      ReadBatches(absl::StrCat(directory, "/agaricus.train.libsvm"), 64);
  const auto test =
      ReadBatches(absl::StrCat(directory, "/agaricus.test.libsvm"), 1000);
  ASSERT_THAT(train, IsOk());
  ASSERT_THAT(test, IsOk());
  StartWorkers(5);
  const ps::TableSpec spec{
      .name = "weights", .width = 1, .rule = optim::Ftrl({.lr = 0.5})};
  std::vector<std::future<absl::Status>> trainers;
  for (const int trainer : {0, 1}) {
    trainers.push_back(std::async(std::launch::async, [&, trainer] {
      const auto table =
          ps::Table::Create(job_.agent(trainer), spec, {"w2", "w3", "w4"});
      if (!table.ok()) return table.status();
      return TrainLogisticRegression(
          ps::Embedding(*table, {.pooling = ps::Pooling::kSum,
                                 .max_pushes_under_way = 4}),
          *train, static_cast<size_t>(trainer), 2, /*epochs=*/20);
    }));
  }
  for (auto& trainer : trainers) ASSERT_THAT(trainer.get(), IsOk());
  const auto table =
      ps::Table::Open(job_.agent(0), "weights", {"w2", "w3", "w4"});
  ASSERT_THAT(table, IsOk());
  const auto accuracy =
      Accuracy(ps::Embedding(*table, {.pooling = ps::Pooling::kSum}), *test);
  ASSERT_THAT(accuracy, IsOk());
  EXPECT_GE(*accuracy, 0.999);
}

// The prediction is the product of a row of a table and dense weights, which
// another worker owns. One backward pass reaches both.
TEST_F(SparseTrainingTest, RowsAndDenseParametersTrainInOneStep) {
  ASSERT_THAT(job_.registry().Register(
                  kMakeWeights,
                  []() -> absl::StatusOr<Tensor> {
                    Tensor weights = Tensor::Full({4, 1}, 0.5);
                    RETURN_IF_ERROR(autograd::SetRequiresGrad(weights));
                    return weights;
                  }),
              IsOk());
  StartWorkers(3);
  rpc::Agent& agent = job_.agent(0);
  {
    const auto table =
        ps::Table::Create(agent,
                          {.name = "rows",
                           .width = 4,
                           .rule = optim::Sgd({.lr = 0.1}),
                           .initializer = ps::Initializer::Normal(0, 0.5)},
                          {"w1", "w2"});
    ASSERT_THAT(table, IsOk());
    ps::Embedding embedding(*table);
    const auto weights = rref::Remote(agent, "w1", kMakeWeights);
    ASSERT_THAT(weights, IsOk());
    const auto optimizer = dist_optim::DistributedOptimizer::Create(
        agent, optim::Sgd({.lr = 0.1}), {*weights});
    ASSERT_THAT(optimizer, IsOk());
    const Tensor keys =
        Tensor::FromVector(std::vector<int64_t>{1, 2, 3, 4}, {4});
    const Tensor target =
        Tensor::FromVector(std::vector<float>{1, -1, 2, 0}, {4, 1});
    const auto step = [&]() -> absl::StatusOr<float> {
      ASSIGN_OR_RETURN(const auto context,
                       dist_autograd::ContextScope::Open(agent));
      ASSIGN_OR_RETURN(const Tensor rows, embedding.Forward(keys));
      ASSIGN_OR_RETURN(const Tensor dense, weights->ToHere());
      ASSIGN_OR_RETURN(const Tensor prediction, autograd::MatMul(rows, dense));
      ASSIGN_OR_RETURN(const Tensor loss, nn::MseLoss(prediction, target));
      RETURN_IF_ERROR(dist_autograd::Backward(agent, context->id(), {loss}));
      RETURN_IF_ERROR((*optimizer)->Step(context->id()));
      return loss.item<float>();
    };
    const auto first = step();
    ASSERT_THAT(first, IsOk());
    absl::StatusOr<float> last = first;
    for (int i = 0; i < 300; ++i) {
      last = step();
      ASSERT_THAT(last, IsOk());
    }
    EXPECT_GT(*first, 0.5);
    EXPECT_LT(*last, 0.001);
    ASSERT_THAT(embedding.Flush(), IsOk());
    const auto dense = weights->ToHere();
    ASSERT_THAT(dense, IsOk());
    EXPECT_NE(dense->ToVector<float>(), std::vector<float>(4, 0.5f));
  }
  for (const absl::Status& status : job_.ShutdownAll()) {
    EXPECT_THAT(status, IsOk());
  }
}

}  // namespace
}  // namespace hawser::tests
