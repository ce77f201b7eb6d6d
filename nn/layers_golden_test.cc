// Tests that compare forward and backward passes of layers with results of
// PyTorch 1.13.1.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "nn/activation.h"
#include "nn/conv2d.h"
#include "nn/embedding.h"
#include "nn/embedding_bag.h"
#include "nn/flatten.h"
#include "nn/golden_cases.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/lstm.h"
#include "nn/module.h"
#include "nn/multihead_attention.h"
#include "nn/pool2d.h"
#include "nn/sequential.h"
#include "nn/transformer_encoder_layer.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using ::hawser::async::IsOk;
using ::hawser::tensor::DType;
using ::nlohmann::ordered_json;

constexpr DType kF64 = DType::kF64;

std::shared_ptr<tensor::Generator> NewGenerator() {
  return std::make_shared<tensor::Generator>(1);
}

// Tensors by name; undefined for unknown names.
class Inputs {
 public:
  explicit Inputs(const NamedTensors& tensors)
      : tensors_(tensors.begin(), tensors.end()) {}

  Tensor operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? Tensor() : found->second;
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

using Forward = std::function<absl::StatusOr<NamedTensors>(const Inputs&)>;

class LayersGoldenTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { golden_ = new ordered_json(ReadGolden()); }
  static void TearDownTestSuite() { delete golden_; }

  // Loads the parameters, runs `forward` on the inputs and compares outputs
  // and gradients.
  void Check(const std::string& name, Module* module, const Forward& forward) {
    SCOPED_TRACE(name);
    const ordered_json& golden = (*golden_)["layers"][name];
    ASSERT_FALSE(golden.is_null());
    ASSERT_THAT(module->LoadStateDict(GoldenTensors(golden["parameters"])),
                IsOk());
    NamedTensors leaves = module->named_parameters();
    const NamedTensors inputs = GoldenTensors(golden["inputs"]);
    for (const auto& [input, tensor] : inputs) {
      if (tensor.dtype() != kF64) continue;
      ASSERT_THAT(autograd::SetRequiresGrad(tensor), IsOk());
      leaves.emplace_back(input, tensor);
    }

    const absl::StatusOr<NamedTensors> outputs = forward(Inputs(inputs));
    ASSERT_THAT(outputs, IsOk());
    std::vector<Tensor> roots;
    std::vector<Tensor> gradients;
    ASSERT_EQ(outputs->size(), golden["outputs"].size());
    for (const auto& [output, tensor] : *outputs) {
      ExpectTensorNear(output, tensor, GoldenTensor(golden["outputs"][output]));
      roots.push_back(tensor);
      gradients.push_back(GoldenTensor(golden["output_gradients"][output]));
    }
    if (leaves.empty()) return;
    ASSERT_THAT(autograd::Backward(roots, gradients), IsOk());
    for (const auto& [leaf, tensor] : leaves) {
      ExpectTensorNear("gradient of " + leaf, autograd::Grad(tensor),
                       GoldenTensor(golden["gradients"][leaf]));
    }
  }

  template <class L>
  void CheckLayer(const std::string& name, absl::StatusOr<L> layer) {
    SCOPED_TRACE(name);
    ASSERT_THAT(layer, IsOk());
    Layer* const raw = layer->get();
    Check(
        name, raw, [raw](const Inputs& inputs) -> absl::StatusOr<NamedTensors> {
          const Tensor ids = inputs["ids"];
          ASSIGN_OR_RETURN(const Tensor y,
                           raw->Forward(ids.defined() ? ids : inputs["input"]));
          return NamedTensors{{"output", y}};
        });
  }

  template <class L>
  void CheckLayer(const std::string& name, std::unique_ptr<L> layer) {
    CheckLayer(name, absl::StatusOr<std::unique_ptr<L>>(std::move(layer)));
  }

  void CheckLstm(const std::string& name, const LSTM::Options& options) {
    const auto lstm = LSTM::Create(options, NewGenerator());
    ASSERT_THAT(lstm, IsOk());
    Check(name, lstm->get(),
          [&](const Inputs& inputs) -> absl::StatusOr<NamedTensors> {
            ASSIGN_OR_RETURN(
                const LSTM::Result result,
                (*lstm)->Forward(inputs["input"],
                                 {inputs["hidden"], inputs["cell"]}));
            return NamedTensors{{"output", result.output},
                                {"hidden", result.state.hidden},
                                {"cell", result.state.cell}};
          });
  }

  void CheckAttention(const std::string& name,
                      const MultiheadAttention::Options& options,
                      const Tensor& float_mask = {}) {
    const auto module = MultiheadAttention::Create(options, NewGenerator());
    ASSERT_THAT(module, IsOk());
    Check(name, module->get(),
          [&](const Inputs& inputs) -> absl::StatusOr<NamedTensors> {
            const Tensor query = inputs["query"];
            const Tensor key = inputs["key"].defined() ? inputs["key"] : query;
            const Tensor value =
                inputs["value"].defined() ? inputs["value"] : query;
            ASSIGN_OR_RETURN(
                const MultiheadAttention::Result result,
                (*module)->ForwardWithWeights(
                    query, key, value,
                    {.attention =
                         float_mask.defined() ? float_mask : inputs["mask"],
                     .padding = inputs["padding"]}));
            return NamedTensors{{"output", result.output},
                                {"weights", result.weights}};
          });
  }

  void CheckEncoder(const std::string& name,
                    const TransformerEncoderLayer::Options& options) {
    const auto layer = TransformerEncoderLayer::Create(options, NewGenerator());
    ASSERT_THAT(layer, IsOk());
    Check(name, layer->get(),
          [&](const Inputs& inputs) -> absl::StatusOr<NamedTensors> {
            ASSIGN_OR_RETURN(const Tensor y,
                             (*layer)->Forward(inputs["input"],
                                               {.attention = inputs["mask"],
                                                .padding = inputs["padding"]}));
            return NamedTensors{{"output", y}};
          });
  }

  static ordered_json* golden_;
};

ordered_json* LayersGoldenTest::golden_ = nullptr;

TEST_F(LayersGoldenTest, Linear) {
  const auto generator = NewGenerator();
  CheckLayer("linear", Linear::Create(
                           {.in_features = 4, .out_features = 3, .dtype = kF64},
                           *generator));
  CheckLayer(
      "linear_no_bias",
      Linear::Create(
          {.in_features = 4, .out_features = 3, .bias = false, .dtype = kF64},
          *generator));
  CheckLayer("linear_relu",
             Linear::Create({.in_features = 4,
                             .out_features = 3,
                             .activation = tensor::Activation::kRelu,
                             .dtype = kF64},
                            *generator));
}

TEST_F(LayersGoldenTest, Conv2d) {
  const auto generator = NewGenerator();
  CheckLayer("conv2d", Conv2d::Create({.in_channels = 2,
                                       .out_channels = 3,
                                       .kernel = {3, 3},
                                       .dtype = kF64},
                                      *generator));
  CheckLayer("conv2d_options",
             Conv2d::Create({.in_channels = 4,
                             .out_channels = 6,
                             .kernel = {3, 2},
                             .convolution = {.stride = {2, 1},
                                             .padding = {1, 2},
                                             .dilation = {1, 2},
                                             .groups = 2},
                             .bias = false,
                             .dtype = kF64},
                            *generator));
}

TEST_F(LayersGoldenTest, Pool2d) {
  const tensor::Pool2dOptions plain = {.kernel = {2, 2}};
  const tensor::Pool2dOptions options = {.kernel = {3, 2},
                                         .stride = {2, 1},
                                         .padding = {1, 1},
                                         .count_include_pad = false};
  CheckLayer("max_pool2d", std::make_unique<MaxPool2d>(plain));
  CheckLayer("max_pool2d_options", std::make_unique<MaxPool2d>(options));
  CheckLayer("avg_pool2d", std::make_unique<AvgPool2d>(plain));
  CheckLayer("avg_pool2d_options", std::make_unique<AvgPool2d>(options));
}

TEST_F(LayersGoldenTest, LayerNorm) {
  CheckLayer("layer_norm",
             LayerNorm::Create({.normalized_shape = {5}, .dtype = kF64}));
  CheckLayer("layer_norm_2d",
             LayerNorm::Create(
                 {.normalized_shape = {3, 4}, .eps = 1e-2, .dtype = kF64}));
  CheckLayer("layer_norm_plain",
             LayerNorm::Create(
                 {.normalized_shape = {5}, .affine = false, .dtype = kF64}));
}

TEST_F(LayersGoldenTest, Embedding) {
  const auto generator = NewGenerator();
  CheckLayer(
      "embedding",
      Embedding::Create({.rows = 6, .width = 3, .dtype = kF64}, *generator));
  CheckLayer(
      "embedding_padding",
      Embedding::Create({.rows = 6, .width = 3, .padding_id = 2, .dtype = kF64},
                        *generator));
}

TEST_F(LayersGoldenTest, EmbeddingBag) {
  const std::pair<const char*, tensor::BagMode> cases[] = {
      {"embedding_bag_sum", tensor::BagMode::kSum},
      {"embedding_bag_mean", tensor::BagMode::kMean},
      {"embedding_bag_max", tensor::BagMode::kMax}};
  for (const auto& [name, mode] : cases) {
    const auto module = EmbeddingBag::Create(
        {.rows = 6, .width = 3, .mode = mode, .dtype = kF64}, *NewGenerator());
    ASSERT_THAT(module, IsOk());
    Check(name, module->get(),
          [&](const Inputs& inputs) -> absl::StatusOr<NamedTensors> {
            const Tensor offsets = inputs["offsets"];
            ASSIGN_OR_RETURN(const Tensor y,
                             offsets.defined()
                                 ? (*module)->Forward(inputs["ids"], offsets)
                                 : (*module)->Forward(inputs["ids"]));
            return NamedTensors{{"output", y}};
          });
  }
}

TEST_F(LayersGoldenTest, Lstm) {
  CheckLstm("lstm", {.input_size = 3, .hidden_size = 4, .dtype = kF64});
  CheckLstm("lstm_layers", {.input_size = 3,
                            .hidden_size = 4,
                            .num_layers = 2,
                            .batch_first = true,
                            .dtype = kF64});
  CheckLstm("lstm_no_bias",
            {.input_size = 3, .hidden_size = 2, .bias = false, .dtype = kF64});
}

TEST_F(LayersGoldenTest, MultiheadAttention) {
  CheckAttention("attention_self",
                 {.embed_dim = 6, .num_heads = 2, .dtype = kF64});
  CheckAttention(
      "attention_cross",
      {.embed_dim = 6, .num_heads = 3, .batch_first = true, .dtype = kF64});
  CheckAttention(
      "attention_causal",
      {.embed_dim = 4, .num_heads = 2, .bias = false, .dtype = kF64});
  std::vector<double> mask(96);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = 0.01 * i;
  CheckAttention("attention_float_mask",
                 {.embed_dim = 4, .num_heads = 2, .dtype = kF64},
                 Tensor::FromVector(mask, {6, 4, 4}));
}

TEST_F(LayersGoldenTest, TransformerEncoderLayer) {
  CheckEncoder("encoder", {.model_width = 6,
                           .num_heads = 2,
                           .feedforward_width = 8,
                           .dropout = 0,
                           .dtype = kF64});
  CheckEncoder("encoder_norm_first",
               {.model_width = 6,
                .num_heads = 3,
                .feedforward_width = 8,
                .dropout = 0,
                .activation = TransformerEncoderLayer::Activation::kGelu,
                .batch_first = true,
                .norm_first = true,
                .dtype = kF64});
}

TEST_F(LayersGoldenTest, LayersWithoutParameters) {
  CheckLayer("relu", std::make_unique<ReLU>());
  CheckLayer("gelu", std::make_unique<GELU>());
  CheckLayer("silu", std::make_unique<SiLU>());
  CheckLayer("sigmoid", std::make_unique<Sigmoid>());
  CheckLayer("tanh", std::make_unique<Tanh>());
  CheckLayer("softmax", std::make_unique<Softmax>(1));
  CheckLayer("log_softmax", std::make_unique<LogSoftmax>(-1));
  CheckLayer("flatten", std::make_unique<Flatten>());
}

TEST_F(LayersGoldenTest, Sequential) {
  const auto generator = NewGenerator();
  auto model = std::make_unique<Sequential>();
  model->Append(*Conv2d::Create(
      {.in_channels = 1, .out_channels = 2, .kernel = {3, 3}, .dtype = kF64},
      *generator));
  model->Append(std::make_unique<ReLU>());
  model->Append(
      std::make_unique<MaxPool2d>(tensor::Pool2dOptions{.kernel = {2, 2}}));
  model->Append(std::make_unique<Flatten>());
  model->Append(*Linear::Create(
      {.in_features = 8, .out_features = 3, .dtype = kF64}, *generator));
  model->Append(std::make_unique<Tanh>());
  CheckLayer("sequential", std::move(model));
}

}  // namespace
}  // namespace hawser::nn
