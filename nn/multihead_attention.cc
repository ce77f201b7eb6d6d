#include "nn/multihead_attention.h"

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/cast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/join.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "autograd/ops/view.h"
#include "nn/init.h"
#include "nn/internal/layer_error.h"
#include "tensor/dtype.h"
#include "tensor/ops/elementwise.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using tensor::DType;
using tensor::Shape;

// Converts a mask to numbers to add to scores, with the dtype and device of
// `like`.
absl::StatusOr<Tensor> Additive(const Tensor& mask, const Tensor& like) {
  if (mask.dtype() != DType::kBool) return autograd::Cast(mask, like.dtype());
  const tensor::TensorOptions options{like.dtype(), like.device()};
  return tensor::Where(
      mask, Tensor::Scalar(-std::numeric_limits<double>::infinity(), options),
      Tensor::Scalar(0, options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MultiheadAttention>> MultiheadAttention::Create(
    const Options& o, std::shared_ptr<tensor::Generator> generator) {
  RETURN_IF_ERROR(internal::CheckSizes(
      "MultiheadAttention",
      {{"embed_dim", o.embed_dim}, {"num_heads", o.num_heads}}));
  if (o.embed_dim % o.num_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("MultiheadAttention: ", o.num_heads,
                     " heads do not divide embed_dim ", o.embed_dim));
  }
  ASSIGN_OR_RETURN(auto dropout, Dropout::Create(o.dropout, generator));
  auto module = std::unique_ptr<MultiheadAttention>(new MultiheadAttention(o));
  ASSIGN_OR_RETURN(
      module->in_proj_weight_,
      Tensor::TryEmpty({3 * o.embed_dim, o.embed_dim}, {.dtype = o.dtype}));
  RETURN_IF_ERROR(FillXavierUniform(module->in_proj_weight_, 1, *generator));
  ASSIGN_OR_RETURN(auto out_proj, Linear::Create({.in_features = o.embed_dim,
                                                  .out_features = o.embed_dim,
                                                  .bias = o.bias,
                                                  .dtype = o.dtype},
                                                 *generator));
  if (o.bias) {
    module->in_proj_bias_ =
        Tensor::Zeros({3 * o.embed_dim}, {.dtype = o.dtype});
    RETURN_IF_ERROR(FillConstant(out_proj->parameters()[1], 0));
  }
  module->RegisterParameter("in_proj_weight", &module->in_proj_weight_);
  module->RegisterParameter("in_proj_bias", &module->in_proj_bias_);
  module->out_proj_ = module->RegisterModule("out_proj", std::move(out_proj));
  module->dropout_ = module->RegisterModule("dropout", std::move(dropout));
  return module;
}

absl::Status MultiheadAttention::CheckInputs(const Tensor& query,
                                             const Tensor& key,
                                             const Tensor& value) const {
  const std::string layer = absl::StrCat(
      "MultiheadAttention(", options_.embed_dim, ", ", options_.num_heads, ")");
  const std::string expected =
      absl::StrCat(options_.batch_first ? "[n, time, " : "[time, n, ",
                   options_.embed_dim, "]");
  const std::pair<const char*, const Tensor*> inputs[] = {
      {"query", &query}, {"key", &key}, {"value", &value}};
  for (const auto& [role, x] : inputs) {
    if (x->defined() && x->rank() == 3 && x->dim(2) == options_.embed_dim) {
      continue;
    }
    return internal::WrongInput(layer, role, expected, *x);
  }
  const int batch = options_.batch_first ? 0 : 1;
  if (key.dim(batch) != query.dim(batch)) {
    return internal::WrongInput(
        layer, "key",
        absl::StrCat("of the query's batch size ", query.dim(batch)), key);
  }
  if (value.shape() != key.shape()) {
    return internal::WrongInput(
        layer, "value",
        absl::StrCat("of the key's shape ", key.shape().ToString()), value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> MultiheadAttention::SplitHeads(const Tensor& x) const {
  const int64_t heads = options_.num_heads;
  ASSIGN_OR_RETURN(const Tensor split,
                   autograd::Reshape(x, {x.dim(0), x.dim(1), heads,
                                         options_.embed_dim / heads}));
  // [n, heads, time, width]
  const std::array<int, 4> order =
      options_.batch_first ? std::array{0, 2, 1, 3} : std::array{1, 2, 0, 3};
  return autograd::Permute(split, order);
}

absl::StatusOr<Tensor> MultiheadAttention::JoinHeads(const Tensor& x) const {
  const std::array<int, 4> order =
      options_.batch_first ? std::array{0, 2, 1, 3} : std::array{2, 0, 1, 3};
  ASSIGN_OR_RETURN(const Tensor joined, autograd::Permute(x, order));
  return autograd::Reshape(joined,
                           {joined.dim(0), joined.dim(1), options_.embed_dim});
}

absl::StatusOr<MultiheadAttention::Heads> MultiheadAttention::Project(
    const Tensor& query, const Tensor& key, const Tensor& value) const {
  const int64_t e = options_.embed_dim;
  std::vector<Tensor> projected;
  if (key.is_same(query) && value.is_same(query)) {
    // Self-attention: one product for query, key and value.
    ASSIGN_OR_RETURN(const Tensor all,
                     autograd::Linear(query, in_proj_weight_, in_proj_bias_));
    ASSIGN_OR_RETURN(projected,
                     autograd::Split(all, std::vector<int64_t>{e, e, e}, 2));
  } else {
    const Tensor* inputs[] = {&query, &key, &value};
    for (int64_t i = 0; i < 3; ++i) {
      ASSIGN_OR_RETURN(const Tensor weight,
                       autograd::Narrow(in_proj_weight_, 0, i * e, e));
      Tensor bias;
      if (in_proj_bias_.defined()) {
        ASSIGN_OR_RETURN(bias, autograd::Narrow(in_proj_bias_, 0, i * e, e));
      }
      ASSIGN_OR_RETURN(projected.emplace_back(),
                       autograd::Linear(*inputs[i], weight, bias));
    }
  }
  Heads heads;
  ASSIGN_OR_RETURN(heads.query, SplitHeads(projected[0]));
  ASSIGN_OR_RETURN(heads.key, SplitHeads(projected[1]));
  ASSIGN_OR_RETURN(heads.value, SplitHeads(projected[2]));
  return heads;
}

absl::StatusOr<Tensor> MultiheadAttention::Mask(
    Tensor scores, const AttentionMasks& masks) const {
  const int64_t n = scores.dim(0);
  const int64_t heads = scores.dim(1);
  const int64_t t = scores.dim(2);
  const int64_t s = scores.dim(3);
  if (masks.attention.defined()) {
    const Shape shared = {t, s};
    const Shape single = {n * heads, t, s};
    if (masks.attention.shape() != shared &&
        masks.attention.shape() != single) {
      return internal::WrongInput(
          "MultiheadAttention", "attention mask",
          absl::StrCat(shared.ToString(), " or ", single.ToString()),
          masks.attention);
    }
    ASSIGN_OR_RETURN(Tensor mask, Additive(masks.attention, scores));
    if (mask.rank() == 3) {
      ASSIGN_OR_RETURN(mask, autograd::Reshape(mask, scores.shape()));
    }
    ASSIGN_OR_RETURN(scores, autograd::Add(scores, mask));
  }
  if (masks.padding.defined()) {
    const Shape expected = {n, s};
    if (masks.padding.shape() != expected ||
        masks.padding.dtype() != DType::kBool) {
      return internal::WrongInput("MultiheadAttention", "padding mask",
                                  absl::StrCat("bool", expected.ToString()),
                                  masks.padding);
    }
    ASSIGN_OR_RETURN(Tensor mask, Additive(masks.padding, scores));
    ASSIGN_OR_RETURN(mask, mask.Reshape({n, 1, 1, s}));
    ASSIGN_OR_RETURN(scores, autograd::Add(scores, mask));
  }
  return scores;
}

absl::StatusOr<MultiheadAttention::Result> MultiheadAttention::Attend(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const AttentionMasks& masks) const {
  RETURN_IF_ERROR(CheckInputs(query, key, value));
  ASSIGN_OR_RETURN(const Heads heads, Project(query, key, value));
  const double scale = 1 / std::sqrt(static_cast<double>(heads.query.dim(3)));
  ASSIGN_OR_RETURN(const Tensor scaled,
                   autograd::MulScalar(heads.query, scale));
  ASSIGN_OR_RETURN(const Tensor turned, autograd::Transpose(heads.key, 2, 3));
  ASSIGN_OR_RETURN(Tensor scores, autograd::MatMul(scaled, turned));
  ASSIGN_OR_RETURN(scores, Mask(std::move(scores), masks));
  ASSIGN_OR_RETURN(Tensor weights, autograd::Softmax(scores, -1));
  ASSIGN_OR_RETURN(weights, dropout_->Forward(weights));
  ASSIGN_OR_RETURN(const Tensor mixed, autograd::MatMul(weights, heads.value));
  ASSIGN_OR_RETURN(const Tensor joined, JoinHeads(mixed));
  Result result;
  ASSIGN_OR_RETURN(result.output, out_proj_->Forward(joined));
  result.weights = std::move(weights);
  return result;
}

absl::StatusOr<Tensor> MultiheadAttention::Forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const AttentionMasks& masks) const {
  ASSIGN_OR_RETURN(Result result, Attend(query, key, value, masks));
  return std::move(result.output);
}

absl::StatusOr<MultiheadAttention::Result>
MultiheadAttention::ForwardWithWeights(const Tensor& query, const Tensor& key,
                                       const Tensor& value,
                                       const AttentionMasks& masks) const {
  ASSIGN_OR_RETURN(Result result, Attend(query, key, value, masks));
  ASSIGN_OR_RETURN(result.weights, autograd::Mean(result.weights, {1}));
  return result;
}

}  // namespace hawser::nn
