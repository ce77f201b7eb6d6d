// Tests of invalid arguments of layers, of initial values, and of dropout.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/activation.h"
#include "nn/conv2d.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/embedding_bag.h"
#include "nn/flatten.h"
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
#include "tensor/ops/reduce.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::hawser::tensor::Shape;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

auto Invalid(const std::string& layer, const std::string& shape = "") {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(layer), HasSubstr(shape)));
}

std::shared_ptr<tensor::Generator> NewGenerator() {
  return std::make_shared<tensor::Generator>(11);
}

Tensor Ids(const std::vector<int64_t>& ids, const Shape& shape) {
  return Tensor::FromVector(ids, shape);
}

TEST(LayersTest, SizesAreCheckedAtConstruction) {
  const auto generator = NewGenerator();
  EXPECT_THAT(Linear::Create({.out_features = 1}, *generator),
              Invalid("Linear: in_features", "0"));
  EXPECT_THAT(
      Linear::Create({.in_features = 1, .out_features = -2}, *generator),
      Invalid("Linear: out_features", "-2"));
  EXPECT_THAT(Linear::Create(
                  {.in_features = 1, .out_features = 1, .dtype = DType::kI64},
                  *generator),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Conv2d::Create({.in_channels = 1, .out_channels = 1}, *generator),
              Invalid("Conv2d: the kernel's height"));
  EXPECT_THAT(Conv2d::Create({.in_channels = 3,
                              .out_channels = 2,
                              .kernel = {1, 1},
                              .convolution = {.groups = 2}},
                             *generator),
              Invalid("Conv2d: 2 groups"));
  EXPECT_THAT(LayerNorm::Create({}), Invalid("LayerNorm"));
  EXPECT_THAT(LayerNorm::Create({.normalized_shape = {3, 0}}),
              Invalid("LayerNorm"));
  EXPECT_THAT(
      LayerNorm::Create({.normalized_shape = {3}, .dtype = DType::kI32}),
      Invalid("LayerNorm"));
  EXPECT_THAT(Embedding::Create({.rows = 2}, *generator),
              Invalid("Embedding: width"));
  EXPECT_THAT(
      Embedding::Create({.rows = 2, .width = 1, .padding_id = 2}, *generator),
      Invalid("padding_id 2"));
  EXPECT_THAT(EmbeddingBag::Create({.width = 2}, *generator),
              Invalid("EmbeddingBag: rows"));
  EXPECT_THAT(LSTM::Create({.input_size = 1}, generator),
              Invalid("LSTM: hidden_size"));
  EXPECT_THAT(LSTM::Create({.input_size = 1, .hidden_size = 1, .dropout = 2},
                           generator),
              Invalid("Dropout", "2"));
  EXPECT_THAT(
      MultiheadAttention::Create({.embed_dim = 4, .num_heads = 3}, generator),
      Invalid("MultiheadAttention: 3 heads"));
  EXPECT_THAT(TransformerEncoderLayer::Create({.num_heads = 2}, generator),
              Invalid("TransformerEncoderLayer: model_width"));
  EXPECT_THAT(Dropout::Create(-0.1, generator), Invalid("Dropout", "-0.1"));
  EXPECT_THAT(Dropout::Create(std::nan(""), generator), Invalid("Dropout"));
  EXPECT_THAT(Dropout::Create(0.1, nullptr), Invalid("Dropout: the generator"));
}

TEST(LayersTest, ErrorsNameInputsOfWrongShape) {
  const auto g = NewGenerator();
  const Tensor x = Tensor::Zeros({2, 3});
  const auto linear =
      *Linear::Create({.in_features = 4, .out_features = 5}, *g);
  EXPECT_THAT(linear->Forward(x), Invalid("Linear(4, 5)", "f32[2, 3]"));
  EXPECT_THAT(linear->Forward(Tensor()), Invalid("Linear(4, 5)", "undefined"));
  EXPECT_THAT(linear->Forward(Tensor::Scalar(1)), Invalid("Linear", "f32[]"));
  EXPECT_THAT(linear->Forward(Tensor::Zeros({4}, {.dtype = DType::kF64})),
              Invalid("Linear"));
  const auto conv = *Conv2d::Create(
      {.in_channels = 2, .out_channels = 1, .kernel = {1, 1}}, *g);
  EXPECT_THAT(conv->Forward(x), Invalid("Conv2d(2, 1)", "f32[2, 3]"));
  EXPECT_THAT(conv->Forward(Tensor::Zeros({1, 3, 4, 4})),
              Invalid("[n, 2, h, w]", "f32[1, 3, 4, 4]"));
  EXPECT_THAT(MaxPool2d({.kernel = {2, 2}}).Forward(x), Invalid("MaxPool2d"));
  EXPECT_THAT(AvgPool2d({.kernel = {2, 2}}).Forward(x), Invalid("AvgPool2d"));
  EXPECT_THAT(Flatten(1, 2).Forward(x), Invalid("Flatten(1, 2)", "f32[2, 3]"));
  EXPECT_THAT(Flatten(-1, -2).Forward(x), Invalid("Flatten(-1, -2)"));
  EXPECT_THAT((*LayerNorm::Create({.normalized_shape = {4, 3}}))->Forward(x),
              Invalid("LayerNorm([4, 3])", "[..., 4, 3]"));
  EXPECT_THAT((*LayerNorm::Create({.normalized_shape = {1, 2, 3}}))->Forward(x),
              Invalid("LayerNorm", "f32[2, 3]"));
  EXPECT_THAT(Softmax(2).Forward(x),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReLU().Forward(Tensor()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(LayersTest, ErrorsNameInvalidIds) {
  const auto g = NewGenerator();
  const auto embedding = *Embedding::Create({.rows = 3, .width = 2}, *g);
  EXPECT_THAT(embedding->Forward(Tensor::Zeros({2})),
              Invalid("Embedding(3, 2)", "f32[2]"));
  EXPECT_THAT(embedding->Forward(Ids({0, 3}, {2})),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("3")));
  const auto bag = *EmbeddingBag::Create({.rows = 3, .width = 2}, *g);
  EXPECT_THAT(bag->Forward(Ids({0, 1}, {2})),
              Invalid("EmbeddingBag(3, 2)", "i64[2]"));
  EXPECT_THAT(bag->Forward(Ids({0, 1}, {1, 2}), Ids({0}, {1})),
              Invalid("EmbeddingBag(3, 2)", "i64[1, 2]"));
  EXPECT_THAT(bag->Forward(Ids({0, -1}, {2}), Ids({0}, {1})),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("-1")));
}

TEST(LayersTest, ErrorsNameSequencesOfWrongShape) {
  const auto g = NewGenerator();
  const auto lstm = *LSTM::Create({.input_size = 3, .hidden_size = 2}, g);
  const Tensor x = Tensor::Zeros({5, 4, 3});
  EXPECT_THAT(lstm->Forward(Tensor::Zeros({5, 4, 2})),
              Invalid("LSTM(3, 2)", "f32[5, 4, 2]"));
  EXPECT_THAT(lstm->Forward(Tensor::Zeros({0, 4, 3})),
              Invalid("at least one step"));
  EXPECT_THAT(lstm->Forward(x, {.hidden = Tensor::Zeros({1, 5, 2})}),
              Invalid("hidden state must be [1, 4, 2]"));
  EXPECT_THAT(lstm->Forward(x, {.cell = Tensor::Zeros({1, 4, 3})}),
              Invalid("cell state must be [1, 4, 2]"));

  const auto attention =
      *MultiheadAttention::Create({.embed_dim = 4, .num_heads = 2}, g);
  const Tensor query = Tensor::Zeros({5, 3, 4});
  EXPECT_THAT(attention->Forward(x, query, query),
              Invalid("query must be [time, n, 4]", "f32[5, 4, 3]"));
  EXPECT_THAT(attention->Forward(query, Tensor::Zeros({5, 2, 4}), query),
              Invalid("batch size 3"));
  EXPECT_THAT(attention->Forward(query, query, Tensor::Zeros({6, 3, 4})),
              Invalid("value"));
  EXPECT_THAT(attention->Forward(query, query, query,
                                 {.attention = Tensor::Zeros({5, 4})}),
              Invalid("attention mask must be [5, 5] or [6, 5, 5]"));
  EXPECT_THAT(attention->Forward(query, query, query,
                                 {.padding = Tensor::Zeros({3, 5})}),
              Invalid("padding mask must be bool[3, 5]"));

  const auto encoder =
      *TransformerEncoderLayer::Create({.model_width = 4, .num_heads = 2}, g);
  EXPECT_THAT(encoder->Forward(x),
              Invalid("TransformerEncoderLayer(4)", "f32[5, 4, 3]"));
}

// The gradient of a loss of self-attention over `x` with respect to the leaf
// `mask`.
absl::StatusOr<Tensor> MaskGradient(const MultiheadAttention& attention,
                                    const Tensor& x, const Tensor& mask) {
  RETURN_IF_ERROR(autograd::SetRequiresGrad(mask));
  ASSIGN_OR_RETURN(const Tensor y,
                   attention.Forward(x, x, x, {.attention = mask}));
  ASSIGN_OR_RETURN(const Tensor square, autograd::Square(y));
  ASSIGN_OR_RETURN(const Tensor loss, autograd::Sum(square));
  RETURN_IF_ERROR(autograd::Backward(loss));
  return autograd::Grad(mask);
}

TEST(LayersTest, LearnedAttentionMaskOfAnyShapeGetsAGradient) {
  const auto g = NewGenerator();
  const auto attention =
      *MultiheadAttention::Create({.embed_dim = 4, .num_heads = 2}, g);
  const Tensor x = *tensor::Normal({5, 3, 4}, 0, 1, *g);
  const auto shared =
      MaskGradient(*attention, x, Tensor::Zeros({5, 5}, {DType::kF32}));
  ASSERT_THAT(shared, IsOk());
  ASSERT_TRUE(shared->defined());
  const std::vector<float> expected = shared->ToVector<float>();
  EXPECT_GT(std::fabs(expected[1]), 1e-4);

  const auto converted =
      MaskGradient(*attention, x, Tensor::Zeros({5, 5}, {DType::kF64}));
  ASSERT_THAT(converted, IsOk());
  ASSERT_TRUE(converted->defined());
  EXPECT_THAT(converted->ToVector<double>(),
              Pointwise(FloatNear(1e-6), expected));

  // A mask per head and sequence. These gradients add up to that of the shared
  // mask.
  const auto single = MaskGradient(*attention, x, Tensor::Zeros({6, 5, 5}));
  ASSERT_THAT(single, IsOk());
  ASSERT_TRUE(single->defined());
  EXPECT_THAT(tensor::Sum(*single, {0})->ToVector<float>(),
              Pointwise(FloatNear(1e-5), expected));
}

TEST(LayersTest, ErrorOfSequentialNamesTheLayer) {
  const auto g = NewGenerator();
  Sequential model;
  model.Append(*Linear::Create({.in_features = 3, .out_features = 4}, *g));
  model.Append("head",
               *Linear::Create({.in_features = 5, .out_features = 1}, *g));
  EXPECT_THAT(model.Forward(Tensor::Zeros({2, 3})),
              Invalid("layer head: Linear(5, 1)", "f32[2, 4]"));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model.named_parameters()) {
    names.push_back(name);
  }
  EXPECT_THAT(names, testing::ElementsAre("0.weight", "0.bias", "head.weight",
                                          "head.bias"));
}

double Largest(const Tensor& tensor) {
  double largest = 0;
  for (const float value : tensor.ToVector<float>()) {
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  return largest;
}

TEST(LayersTest, InitialValuesAreInPyTorchsRange) {
  const auto g = NewGenerator();
  const auto linear =
      *Linear::Create({.in_features = 25, .out_features = 40}, *g);
  for (const Tensor& parameter : linear->parameters()) {
    EXPECT_LE(Largest(parameter), 0.2);
    EXPECT_GT(Largest(parameter), 0.18);
  }
  const auto conv = *Conv2d::Create({.in_channels = 8,
                                     .out_channels = 40,
                                     .kernel = {5, 5},
                                     .convolution = {.groups = 2}},
                                    *g);
  EXPECT_EQ(conv->parameters()[0].shape(), (Shape{40, 4, 5, 5}));
  for (const Tensor& parameter : conv->parameters()) {
    EXPECT_LE(Largest(parameter), 0.1);
    EXPECT_GT(Largest(parameter), 0.09);
  }
  const auto lstm = *LSTM::Create({.input_size = 5, .hidden_size = 16}, g);
  for (const Tensor& parameter : lstm->parameters()) {
    EXPECT_LE(Largest(parameter), 0.25);
    EXPECT_GT(Largest(parameter), 0.22);
  }
  const auto attention = *MultiheadAttention::Create({.embed_dim = 24}, g);
  const std::vector<Tensor> parameters = attention->parameters();
  // Xavier: sqrt(6 / (24 + 72)).
  EXPECT_LE(Largest(parameters[0]), 0.25);
  EXPECT_GT(Largest(parameters[0]), 0.24);
  EXPECT_EQ(Largest(parameters[1]), 0);
  EXPECT_EQ(Largest(parameters[3]), 0);
  const auto embedding =
      *Embedding::Create({.rows = 3, .width = 4, .padding_id = 1}, *g);
  EXPECT_EQ(Largest(*embedding->parameters()[0].Detach().Select(0, 1)), 0);
  EXPECT_GT(Largest(*embedding->parameters()[0].Detach().Select(0, 2)), 0);
}

TEST(LayersTest, SizesThatOverflowAreRejected) {
  const auto generator = NewGenerator();
  // A size above the limit, and a size for which weights exceed 2^63 bytes.
  for (const int64_t size : {int64_t{1} << 62, int64_t{1} << 40}) {
    EXPECT_THAT(
        Linear::Create({.in_features = size, .out_features = size}, *generator),
        Invalid(""));
    EXPECT_THAT(Embedding::Create({.rows = size, .width = size}, *generator),
                Invalid(""));
    EXPECT_THAT(EmbeddingBag::Create({.rows = size, .width = size}, *generator),
                Invalid(""));
    EXPECT_THAT(
        Conv2d::Create(
            {.in_channels = size, .out_channels = 1, .kernel = {size, size}},
            *generator),
        Invalid(""));
    EXPECT_THAT(LayerNorm::Create({.normalized_shape = {size, size}}),
                Invalid(""));
    EXPECT_THAT(MultiheadAttention::Create({.embed_dim = size}, generator),
                Invalid(""));
    EXPECT_THAT(
        LSTM::Create({.input_size = size, .hidden_size = size}, generator),
        Invalid(""));
    EXPECT_THAT(TransformerEncoderLayer::Create(
                    {.model_width = size, .feedforward_width = 1}, generator),
                Invalid(""));
    EXPECT_THAT(
        LSTM::Create({.input_size = 1, .hidden_size = 1, .num_layers = size},
                     generator),
        Invalid("LSTM", "num_layers must be at most"));
  }
  EXPECT_THAT(LSTM::Create({.input_size = 1, .hidden_size = int64_t{1} << 62},
                           generator),
              Invalid("LSTM", "hidden_size must be at most"));
}

TEST(LayersTest, LayerNormRequiresANonnegativeEps) {
  for (const double eps : {-1e-5, std::nan("")}) {
    EXPECT_THAT(LayerNorm::Create({.normalized_shape = {3}, .eps = eps}),
                Invalid("LayerNorm", "eps"));
  }
  EXPECT_THAT(LayerNorm::Create({.normalized_shape = {3}, .eps = 0}), IsOk());
}

TEST(LayersTest, DropoutAppliesOnlyWhileTraining) {
  const auto dropout = *Dropout::Create(0.25, NewGenerator());
  const Tensor x = Tensor::Ones({1000});
  const Tensor y = *dropout->Forward(x);
  const std::vector<float> values = y.ToVector<float>();
  EXPECT_THAT(values, Each(AnyOf(0.0f, testing::FloatNear(4.0f / 3, 1e-6))));
  EXPECT_NEAR(std::count(values.begin(), values.end(), 0.0f), 250, 60);
  // A second call drops other elements.
  EXPECT_NE(dropout->Forward(x)->ToVector<float>(), values);
  dropout->Eval();
  EXPECT_TRUE(dropout->Forward(x)->is_same(x));
}

// Dropout inside a module follows the module's mode. Equal seeds drop the same
// elements.
TEST(LayersTest, DropoutInsideModulesFollowsTheSeed) {
  const auto make = [] {
    return *TransformerEncoderLayer::Create(
        {.model_width = 8, .num_heads = 2, .feedforward_width = 16},
        NewGenerator());
  };
  const auto first = make();
  const auto second = make();
  const Tensor x = Tensor::Ones({3, 2, 8});
  const std::vector<float> trained = first->Forward(x)->ToVector<float>();
  EXPECT_EQ(second->Forward(x)->ToVector<float>(), trained);
  EXPECT_NE(second->Forward(x)->ToVector<float>(), trained);
  first->Eval();
  const std::vector<float> evaluated = first->Forward(x)->ToVector<float>();
  EXPECT_EQ(first->Forward(x)->ToVector<float>(), evaluated);
  EXPECT_NE(evaluated, trained);
}

TEST(LayersTest, LstmDropsOnlyBetweenLayers) {
  const auto make = [](int64_t layers) {
    return *LSTM::Create({.input_size = 3,
                          .hidden_size = 4,
                          .num_layers = layers,
                          .dropout = 0.5},
                         NewGenerator());
  };
  const Tensor x = Tensor::Ones({6, 2, 3});
  const auto one = make(1);
  EXPECT_EQ(one->Forward(x)->output.ToVector<float>(),
            one->Forward(x)->output.ToVector<float>());
  const auto two = make(2);
  EXPECT_NE(two->Forward(x)->output.ToVector<float>(),
            two->Forward(x)->output.ToVector<float>());
}

}  // namespace
}  // namespace hawser::nn
