#ifndef HAWSER_NN_TRANSFORMER_ENCODER_LAYER_H_
#define HAWSER_NN_TRANSFORMER_ENCODER_LAYER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/multihead_attention.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// Self-attention, followed by two linear layers. Both parts have dropout, a
// residual connection and layer normalization (Vaswani et al., 2017), like
// PyTorch's module of this name.
//
// Submodules: "self_attn", "linear1", "linear2", "norm1", "norm2".
class TransformerEncoderLayer final : public Layer {
 public:
  enum class Activation { kRelu, kGelu };

  struct Options {
    int64_t model_width = 0;
    int64_t num_heads = 1;  // Divides model_width.
    int64_t feedforward_width = 2048;
    double dropout = 0.1;
    Activation activation = Activation::kRelu;
    double layer_norm_eps = 1e-5;
    // True: sequences are [n, time, width]; false: [time, n, width].
    bool batch_first = false;
    // True: normalize before each part; false: after its residual connection.
    bool norm_first = false;
    tensor::DType dtype = tensor::DType::kF32;
  };

  // kInvalidArgument, as for the submodules.
  static absl::StatusOr<std::unique_ptr<TransformerEncoderLayer>> Create(
      const Options& options, std::shared_ptr<tensor::Generator> generator);

  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;
  absl::StatusOr<Tensor> Forward(const Tensor& x,
                                 const AttentionMasks& masks) const;

 private:
  explicit TransformerEncoderLayer(const Options& options)
      : options_(options) {}

  absl::StatusOr<Tensor> Attend(const Tensor& x,
                                const AttentionMasks& masks) const;
  absl::StatusOr<Tensor> FeedForward(const Tensor& x) const;

  const Options options_;
  MultiheadAttention* self_attn_ = nullptr;
  Linear* linear1_ = nullptr;
  Linear* linear2_ = nullptr;
  LayerNorm* norm1_ = nullptr;
  LayerNorm* norm2_ = nullptr;
  Dropout* dropout_ = nullptr;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_TRANSFORMER_ENCODER_LAYER_H_
