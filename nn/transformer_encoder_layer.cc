#include "nn/transformer_encoder_layer.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "nn/internal/layer_error.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<TransformerEncoderLayer>>
TransformerEncoderLayer::Create(const Options& o,
                                std::shared_ptr<tensor::Generator> generator) {
  RETURN_IF_ERROR(internal::CheckSizes(
      "TransformerEncoderLayer", {{"model_width", o.model_width},
                                  {"feedforward_width", o.feedforward_width}}));
  auto layer =
      std::unique_ptr<TransformerEncoderLayer>(new TransformerEncoderLayer(o));
  ASSIGN_OR_RETURN(auto self_attn,
                   MultiheadAttention::Create({.embed_dim = o.model_width,
                                               .num_heads = o.num_heads,
                                               .dropout = o.dropout,
                                               .batch_first = o.batch_first,
                                               .dtype = o.dtype},
                                              generator));
  const bool relu = o.activation == Activation::kRelu;
  ASSIGN_OR_RETURN(
      auto linear1,
      Linear::Create({.in_features = o.model_width,
                      .out_features = o.feedforward_width,
                      .activation = relu ? tensor::Activation::kRelu
                                         : tensor::Activation::kNone,
                      .dtype = o.dtype},
                     *generator));
  ASSIGN_OR_RETURN(auto linear2,
                   Linear::Create({.in_features = o.feedforward_width,
                                   .out_features = o.model_width,
                                   .dtype = o.dtype},
                                  *generator));
  const LayerNorm::Options norm = {.normalized_shape = {o.model_width},
                                   .eps = o.layer_norm_eps,
                                   .dtype = o.dtype};
  ASSIGN_OR_RETURN(auto norm1, LayerNorm::Create(norm));
  ASSIGN_OR_RETURN(auto norm2, LayerNorm::Create(norm));
  ASSIGN_OR_RETURN(auto dropout, Dropout::Create(o.dropout, generator));
  layer->self_attn_ = layer->RegisterModule("self_attn", std::move(self_attn));
  layer->linear1_ = layer->RegisterModule("linear1", std::move(linear1));
  layer->dropout_ = layer->RegisterModule("dropout", std::move(dropout));
  layer->linear2_ = layer->RegisterModule("linear2", std::move(linear2));
  layer->norm1_ = layer->RegisterModule("norm1", std::move(norm1));
  layer->norm2_ = layer->RegisterModule("norm2", std::move(norm2));
  return layer;
}

absl::StatusOr<Tensor> TransformerEncoderLayer::Attend(
    const Tensor& x, const AttentionMasks& masks) const {
  ASSIGN_OR_RETURN(const Tensor attended, self_attn_->Forward(x, x, x, masks));
  return dropout_->Forward(attended);
}

absl::StatusOr<Tensor> TransformerEncoderLayer::FeedForward(
    const Tensor& x) const {
  ASSIGN_OR_RETURN(Tensor hidden, linear1_->Forward(x));
  if (options_.activation == Activation::kGelu) {
    ASSIGN_OR_RETURN(hidden, autograd::Gelu(hidden));
  }
  ASSIGN_OR_RETURN(hidden, dropout_->Forward(hidden));
  ASSIGN_OR_RETURN(const Tensor out, linear2_->Forward(hidden));
  return dropout_->Forward(out);
}

absl::StatusOr<Tensor> TransformerEncoderLayer::Forward(const Tensor& x) const {
  return Forward(x, {});
}

absl::StatusOr<Tensor> TransformerEncoderLayer::Forward(
    const Tensor& x, const AttentionMasks& masks) const {
  if (!x.defined() || x.rank() != 3 || x.dim(2) != options_.model_width) {
    return internal::WrongInput(
        absl::StrCat("TransformerEncoderLayer(", options_.model_width, ")"),
        "input",
        absl::StrCat(options_.batch_first ? "[n, time, " : "[time, n, ",
                     options_.model_width, "]"),
        x);
  }
  if (options_.norm_first) {
    ASSIGN_OR_RETURN(const Tensor normed, norm1_->Forward(x));
    ASSIGN_OR_RETURN(const Tensor attended, Attend(normed, masks));
    ASSIGN_OR_RETURN(const Tensor sum, autograd::Add(x, attended));
    ASSIGN_OR_RETURN(const Tensor normed_sum, norm2_->Forward(sum));
    ASSIGN_OR_RETURN(const Tensor fed, FeedForward(normed_sum));
    return autograd::Add(sum, fed);
  }
  ASSIGN_OR_RETURN(const Tensor attended, Attend(x, masks));
  ASSIGN_OR_RETURN(const Tensor sum, autograd::Add(x, attended));
  ASSIGN_OR_RETURN(const Tensor normed, norm1_->Forward(sum));
  ASSIGN_OR_RETURN(const Tensor fed, FeedForward(normed));
  ASSIGN_OR_RETURN(const Tensor fed_sum, autograd::Add(normed, fed));
  return norm2_->Forward(fed_sum);
}

}  // namespace hawser::nn
