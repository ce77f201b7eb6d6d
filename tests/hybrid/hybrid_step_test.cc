// Steps that train a layer on all trainers, a parameter on one server and rows
// of a table on several.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/random_source.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "collectives/loopback/backend.h"
#include "collectives/process_group.h"
#include "collectives/testing/run_ranks.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gtest/gtest.h"
#include "nn/linear.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "parallel/communication_hooks.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/gradient_bucket.h"
#include "ps/embedding.h"
#include "ps/storage/consistency.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/worker_clock.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rref/rref.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using collectives::ProcessGroup;
using ::hawser::async::IsOk;
using parallel::DistributedDataParallel;
using rref::RRef;
using tensor::DType;
using tensor::Tensor;

inline constexpr rpc::Function<RRef<Tensor>()> kBias{"hybrid.Bias"};

// All numbers are multiples of powers of two with few bits, and so are all
// results of these steps: f32 is exact, in any order of additions.
constexpr int kSteps = 4;
constexpr int64_t kSamples = 6;
constexpr int64_t kKeys = 8;
constexpr int64_t kWidth = 4;
constexpr int64_t kOutputs = 3;
constexpr double kRate = 0.125;
constexpr double kRow = 0.5;
constexpr double kBiasValue = -0.25;

struct Batch {
  Tensor keys;     // i64[n, 2]
  Tensor factors;  // f64[n, outputs]
};

std::vector<Batch> MakeBatches() {
  async::RandomSource random(7);
  std::vector<Batch> batches;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<int64_t> keys;
    std::vector<double> factors;
    for (int64_t i = 0; i < kSamples * 2; ++i) {
      keys.push_back(static_cast<int64_t>(random.Below(kKeys)));
    }
    for (int64_t i = 0; i < kSamples * kOutputs; ++i) {
      factors.push_back(static_cast<double>(random.Below(5)) - 2);
    }
    batches.push_back({Tensor::FromVector(keys, {kSamples, 2}),
                       Tensor::FromVector(factors, {kSamples, kOutputs})});
  }
  return batches;
}

std::unique_ptr<nn::Linear> MakeLayer(DType dtype) {
  tensor::Generator generator(1);
  auto layer = *nn::Linear::Create(
      {.in_features = kWidth, .out_features = kOutputs}, generator);
  EXPECT_THAT(layer->To(dtype), IsOk());
  int i = 0;
  for (const Tensor& parameter : layer->parameters()) {
    EXPECT_THAT(autograd::SetRequiresGrad(parameter), IsOk());
    std::vector<double> values;
    for (int64_t k = 0; k < parameter.num_elements(); ++k) {
      values.push_back(0.25 * (++i % 5 - 2));
    }
    Tensor target = parameter.Detach();
    EXPECT_THAT(target.CopyFrom(Tensor::FromVector(values, parameter.shape())),
                IsOk());
  }
  return layer;
}

// The sum of all outputs of relu(sum of the sample's rows + bias), multiplied
// by `factors`.
absl::StatusOr<Tensor> Loss(const nn::Linear& layer, const Tensor& rows,
                            const Tensor& bias, const Tensor& factors) {
  ASSIGN_OR_RETURN(const Tensor sums, autograd::Sum(rows, {1}));
  ASSIGN_OR_RETURN(const Tensor biased, autograd::Add(sums, bias));
  ASSIGN_OR_RETURN(const Tensor hidden, autograd::Relu(biased));
  ASSIGN_OR_RETURN(const Tensor outputs, layer.Forward(hidden));
  ASSIGN_OR_RETURN(const Tensor products, autograd::Mul(outputs, factors));
  return autograd::Sum(products);
}

// What the training has made of the parameters.
struct Trained {
  std::vector<std::vector<double>> layer;
  std::vector<double> bias;
  std::vector<double> rows;
};

std::vector<double> Doubles(const Tensor& tensor) {
  return tensor.Detach().To(DType::kF64)->ToVector<double>();
}

std::vector<std::vector<double>> Parameters(const nn::Linear& layer) {
  std::vector<std::vector<double>> values;
  for (const Tensor& each : layer.parameters()) values.push_back(Doubles(each));
  return values;
}

// One process, all samples, in f64.
Trained TrainAlone() {
  const auto layer = MakeLayer(DType::kF64);
  std::vector<Tensor> parameters = layer->parameters();
  const Tensor table =
      Tensor::Full({kKeys, kWidth}, kRow, {.dtype = DType::kF64});
  const Tensor bias =
      Tensor::Full({kWidth}, kBiasValue, {.dtype = DType::kF64});
  for (const Tensor& each : {table, bias}) {
    EXPECT_THAT(autograd::SetRequiresGrad(each), IsOk());
    parameters.push_back(each);
  }
  const auto optimizer =
      optim::Optimizer::Create(parameters, optim::Sgd({.lr = kRate}));
  for (const Batch& batch : MakeBatches()) {
    (*optimizer)->ZeroGrad();
    const Tensor rows = *autograd::Embedding(table, batch.keys);
    EXPECT_THAT(autograd::Backward(*Loss(*layer, rows, bias, batch.factors)),
                IsOk());
    EXPECT_THAT((*optimizer)->Step(), IsOk());
  }
  return {Parameters(*layer), Doubles(bias), Doubles(table)};
}

struct Case {
  int trainers;
  int servers;
  // Average the gradients of the layer, instead of adding them up: the losses
  // are then multiplied by the number of trainers, and the learning rates of
  // the servers divided by it. Exact for powers of two.
  bool average;
};

parallel::CommunicationHook Hook(const Case& tested) {
  if (tested.average) return parallel::AllReduceHook();
  return [](ProcessGroup& group, const parallel::GradientBucket& bucket) {
    return group.AllReduceAsync(bucket.flat);
  };
}

// A trainer of the job; the servers are the workers after the trainers.
absl::StatusOr<Trained> Train(const Case& tested, rpc::Agent& agent,
                              ProcessGroup& group) {
  std::vector<std::string> servers;
  for (int i = 0; i < tested.servers; ++i) {
    servers.push_back("w" + std::to_string(tested.trainers + i));
  }
  const double scale = tested.average ? tested.trainers : 1;
  ASSIGN_OR_RETURN(
      const ps::Table table,
      ps::Table::Create(agent,
                        {.name = "rows",
                         .width = kWidth,
                         .rule = optim::Sgd({.lr = kRate / scale}),
                         .initializer = ps::Initializer::Constant(kRow),
                         .consistency = ps::Consistency::Synchronous()},
                        servers));
  ps::Embedding embedding(table);
  ASSIGN_OR_RETURN(
      ps::WorkerClock clock,
      ps::WorkerClock::Join({table}, {.num_workers = tested.trainers}));
  // The other trainers get the layer of the first.
  const auto layer = MakeLayer(DType::kF32);
  if (group.rank() > 0) {
    for (const Tensor& each : layer->parameters()) {
      Tensor target = each.Detach();
      RETURN_IF_ERROR(target.CopyFrom(Tensor::Zeros(target.shape())));
    }
  }
  ASSIGN_OR_RETURN(
      const auto parallel,
      DistributedDataParallel::Create(*layer, group, {.hook = Hook(tested)}));
  // One optimizer for the layer here and the bias there.
  std::vector<RRef<Tensor>> local;
  for (const Tensor& each : layer->parameters()) {
    ASSIGN_OR_RETURN(RRef<Tensor> reference, rref::MakeLocal(agent, each));
    local.push_back(std::move(reference));
  }
  ASSIGN_OR_RETURN(const RRef<Tensor> bias, agent.Sync(servers[0], kBias));
  ASSIGN_OR_RETURN(const auto optimizer,
                   dist_optim::DistributedOptimizer::Create(
                       agent, {{optim::Sgd({.lr = kRate}), local},
                               {optim::Sgd({.lr = kRate / scale}), {bias}}}));
  const int64_t part = kSamples / tested.trainers;
  for (const Batch& batch : MakeBatches()) {
    ASSIGN_OR_RETURN(const Tensor keys,
                     batch.keys.Narrow(0, part * group.rank(), part));
    ASSIGN_OR_RETURN(Tensor factors,
                     batch.factors.Narrow(0, part * group.rank(), part));
    ASSIGN_OR_RETURN(factors, factors.To(DType::kF32));
    ASSIGN_OR_RETURN(const auto context,
                     dist_autograd::ContextScope::Open(agent));
    ASSIGN_OR_RETURN(
        const Tensor loss, parallel->Forward([&]() -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const Tensor rows, embedding.Forward(keys));
          ASSIGN_OR_RETURN(const Tensor there, bias.ToHere());
          ASSIGN_OR_RETURN(const Tensor sum,
                           Loss(*layer, rows, there, factors));
          return autograd::MulScalar(sum, scale);
        }));
    RETURN_IF_ERROR(dist_autograd::Backward(agent, context->id(), {loss}));
    RETURN_IF_ERROR(optimizer->Step(context->id()));
    RETURN_IF_ERROR(clock.Advance());
    // The bias has the updates of all trainers before one fetches it.
    RETURN_IF_ERROR(group.Barrier());
  }
  RETURN_IF_ERROR(embedding.Flush());
  std::vector<int64_t> all;
  for (int64_t key = 0; key < kKeys; ++key) all.push_back(key);
  ASSIGN_OR_RETURN(const Tensor rows,
                   table.Pull(Tensor::FromVector(all, {kKeys})).Wait());
  ASSIGN_OR_RETURN(const Tensor there, bias.ToHere());
  RETURN_IF_ERROR(clock.Leave().Wait());
  RETURN_IF_ERROR(group.Barrier());
  return Trained{Parameters(*layer), Doubles(there), Doubles(rows)};
}

class HybridStepTest : public testing::TestWithParam<Case> {};

TEST_P(HybridStepTest, EqualsOneProcessOnTheJoinedBatch) {
  const Case tested = GetParam();
  const Trained expected = TrainAlone();
  ASSERT_NE(expected.rows, std::vector<double>(kKeys * kWidth, kRow));
  ASSERT_NE(expected.bias, std::vector<double>(kWidth, kBiasValue));

  rpc::TestJob job;
  RRef<Tensor> bias;
  ASSERT_THAT(job.registry().Register(kBias, [&bias] { return bias; }), IsOk());
  job.StartAll(
      tested.trainers + tested.servers, [](int, rpc::AgentOptions& options) {
        AddServices(options);
        options.services.push_back(std::make_unique<ps::TableService>());
      });
  const Tensor value = Tensor::Full({kWidth}, kBiasValue);
  ASSERT_THAT(autograd::SetRequiresGrad(value), IsOk());
  bias = *rref::MakeLocal(job.agent(tested.trainers), value);

  collectives::RunRanks(collectives::MakeLoopbackBackends, tested.trainers,
                        [&](ProcessGroup& group) {
                          const auto trained =
                              Train(tested, job.agent(group.rank()), group);
                          ASSERT_THAT(trained, IsOk());
                          EXPECT_EQ(trained->layer, expected.layer);
                          EXPECT_EQ(trained->bias, expected.bias);
                          EXPECT_EQ(trained->rows, expected.rows);
                        });
  bias = {};
  for (const absl::Status& status : job.ShutdownAll()) {
    EXPECT_THAT(status, IsOk());
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, HybridStepTest,
                         testing::Values(Case{1, 1, true}, Case{2, 1, true},
                                         Case{1, 2, false}, Case{2, 2, false},
                                         Case{3, 2, false}),
                         [](const auto& tested) {
                           return std::to_string(tested.param.trainers) +
                                  "Trainers" +
                                  std::to_string(tested.param.servers) +
                                  "Servers" +
                                  (tested.param.average ? "Average" : "Sum");
                         });

}  // namespace
}  // namespace hawser::tests
