// Tests that train a model with its layers on three workers, through
// references, distributed autograd and the distributed optimizer, and compare
// all results with PyTorch's.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/softmax.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"
#include "tests/training_golden.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using rref::RRef;

// One layer. It cannot be sent; other workers use references to it.
struct Layer {
  static constexpr std::string_view kTypeName = "tests.Layer";

  std::string activation;
  RRef<Tensor> weight;
  RRef<Tensor> bias;
};

inline constexpr rpc::Function<Layer(std::string, Tensor, Tensor)> kMakeLayer{
    "tests.MakeLayer"};
inline constexpr rpc::Function<std::vector<RRef<Tensor>>(RRef<Layer>)>
    kParameters{"tests.Parameters"};
inline constexpr rpc::Function<Tensor(RRef<Layer>, Tensor)> kForward{
    "tests.Forward"};
inline constexpr rpc::Function<Tensor(RRef<Tensor>, uint64_t)> kGradient{
    "tests.Gradient"};

absl::StatusOr<Layer> MakeLayer(std::string activation, Tensor weight,
                                Tensor bias) {
  rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
  RETURN_IF_ERROR(autograd::SetRequiresGrad(weight));
  RETURN_IF_ERROR(autograd::SetRequiresGrad(bias));
  Layer layer;
  layer.activation = std::move(activation);
  ASSIGN_OR_RETURN(layer.weight, rref::MakeLocal(agent, std::move(weight)));
  ASSIGN_OR_RETURN(layer.bias, rref::MakeLocal(agent, std::move(bias)));
  return layer;
}

absl::StatusOr<std::vector<RRef<Tensor>>> Parameters(RRef<Layer> reference) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Layer> layer, reference.LocalValue());
  return std::vector<RRef<Tensor>>{layer->weight, layer->bias};
}

absl::StatusOr<Tensor> Forward(RRef<Layer> reference, Tensor x) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Layer> layer, reference.LocalValue());
  ASSIGN_OR_RETURN(const std::shared_ptr<Tensor> weight,
                   layer->weight.LocalValue());
  ASSIGN_OR_RETURN(const std::shared_ptr<Tensor> bias,
                   layer->bias.LocalValue());
  ASSIGN_OR_RETURN(Tensor y, autograd::Linear(x, *weight, *bias));
  if (layer->activation == "relu") return autograd::Relu(y);
  if (layer->activation == "tanh") return autograd::Tanh(y);
  return y;
}

absl::StatusOr<Tensor> Gradient(RRef<Tensor> parameter, uint64_t context) {
  rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
  ASSIGN_OR_RETURN(const std::shared_ptr<Tensor> tensor,
                   parameter.LocalValue());
  ASSIGN_OR_RETURN(
      const dist_autograd::Gradients gradients,
      dist_autograd::GetGradients(agent, dist_autograd::ContextId{context}));
  const Tensor gradient = dist_autograd::FindGradient(gradients, *tensor);
  if (!gradient.defined())
    return absl::NotFoundError("the tensor has no gradient");
  return gradient;
}

void ExpectNear(const std::string& what, const Tensor& actual,
                const Tensor& expected) {
  SCOPED_TRACE(what);
  ASSERT_EQ(actual.shape(), expected.shape());
  const std::vector<double> a = actual.ToVector<double>();
  const std::vector<double> e = expected.ToVector<double>();
  for (size_t i = 0; i < e.size(); ++i) {
    ASSERT_NEAR(a[i], e[i], 1e-10) << "element " << i;
  }
}

class DistributedTrainingGoldenTest
    : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kMakeLayer, MakeLayer), IsOk());
    ASSERT_THAT(job_.registry().Register(kParameters, Parameters), IsOk());
    ASSERT_THAT(job_.registry().Register(kForward, Forward), IsOk());
    ASSERT_THAT(job_.registry().Register(kGradient, Gradient), IsOk());
    StartDistributed(job_, 3);
  }

  // Places layer k on worker k.
  void MakeModel() {
    const std::vector<std::string> activations = {"relu", "tanh", ""};
    for (int k = 0; k < 3; ++k) {
      auto layer = rref::Remote(agent(), rpc::WorkerId(k), kMakeLayer,
                                activations[k], golden_.start[2 * k].second,
                                golden_.start[2 * k + 1].second);
      ASSERT_THAT(layer, IsOk());
      auto parameters = agent().Sync(rpc::WorkerId(k), kParameters, *layer);
      ASSERT_THAT(parameters, IsOk());
      layers_.push_back(*layer);
      parameters_.insert(parameters_.end(), parameters->begin(),
                         parameters->end());
    }
  }

  absl::StatusOr<Tensor> Loss(size_t step) {
    Tensor x = golden_.inputs[step];
    for (const RRef<Layer>& layer : layers_) {
      ASSIGN_OR_RETURN(x, agent().Sync(layer.owner(), kForward, layer, x));
    }
    return autograd::SoftmaxCrossEntropy(x, golden_.labels[step]);
  }

  rpc::Agent& agent() { return job_.agent(0); }

  const TrainingGolden golden_ = ReadTrainingGolden();
  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
  std::vector<RRef<Layer>> layers_;
  std::vector<RRef<Tensor>> parameters_;
};

TEST_P(DistributedTrainingGoldenTest, ThreeWorkersReproducePyTorch) {
  MakeModel();
  if (HasFatalFailure()) return;
  auto optimizer = dist_optim::DistributedOptimizer::Create(
      agent(), optim::Sgd({.lr = golden_.lr, .momentum = golden_.momentum}),
      parameters_);
  ASSERT_THAT(optimizer, IsOk());

  for (size_t step = 0; step < golden_.inputs.size(); ++step) {
    SCOPED_TRACE(step);
    auto context = dist_autograd::ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    auto loss = Loss(step);
    ASSERT_THAT(loss, IsOk());
    EXPECT_NEAR(*loss->item<double>(), golden_.losses[step], 1e-10);
    ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss}),
                IsOk());
    for (size_t i = 0; step == 0 && i < parameters_.size(); ++i) {
      auto gradient = agent().Sync(parameters_[i].owner(), kGradient,
                                   parameters_[i], ToNumber((*context)->id()));
      ASSERT_THAT(gradient, IsOk());
      ExpectNear(golden_.first_gradients[i].first, *gradient,
                 golden_.first_gradients[i].second);
    }
    ASSERT_THAT((*optimizer)->Step((*context)->id()), IsOk());
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto parameter = parameters_[i].ToHere();
    ASSERT_THAT(parameter, IsOk());
    ExpectNear(golden_.end[i].first, *parameter, golden_.end[i].second);
  }

  optimizer->reset();
  layers_.clear();
  parameters_.clear();
  for (const absl::Status& status : job_.ShutdownAll()) {
    EXPECT_THAT(status, IsOk());
  }
  for (int k = 0; k < 3; ++k) ExpectNothingLeft(job_.agent(k));
}

INSTANTIATE_TEST_SUITE_P(Transports, DistributedTrainingGoldenTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests
