#ifndef HAWSER_NN_MULTIHEAD_ATTENTION_H_
#define HAWSER_NN_MULTIHEAD_ATTENTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// Masks of attention. True in a bool mask hides a position from a query. A mask
// of any floating-point dtype is added to the scores, and gets a gradient if it
// requires one. Undefined: no mask.
struct AttentionMasks {
  Tensor attention = {};  // [t, s] or [n * num_heads, t, s], bool or floating.
  Tensor padding = {};    // [n, s], bool: keys that are padding.
};

// Scaled dot-product attention with several heads (Vaswani et al., 2017), like
// PyTorch's module of this name.
//
// Parameters and initial values, with e = embed_dim: "in_proj_weight" [3 e, e]
// (queries, keys, values), Xavier uniform; "in_proj_bias" [3 e], zero;
// "out_proj.weight" [e, e], as in Linear; "out_proj.bias" [e], zero.
class MultiheadAttention final : public Module {
 public:
  struct Options {
    int64_t embed_dim = 0;
    int64_t num_heads = 1;  // Divides embed_dim.
    double dropout = 0;     // Probability, for the attention weights.
    bool bias = true;
    // True: sequences are [n, time, e]; false: [time, n, e].
    bool batch_first = false;
    tensor::DType dtype = tensor::DType::kF32;
  };

  struct Result {
    Tensor output;   // Shape of the query.
    Tensor weights;  // [n, t, s], averaged over heads; by ForwardWithWeights.
  };

  // The generator determines the initial values and, later, the dropped
  // elements.
  //
  // kInvalidArgument: a size is not positive, num_heads does not divide
  // embed_dim, or another option is out of range.
  static absl::StatusOr<std::unique_ptr<MultiheadAttention>> Create(
      const Options& options, std::shared_ptr<tensor::Generator> generator);

  // Queries [t, n, e], keys and values [s, n, e]; with batch_first, the first
  // two dims are exchanged. If the masks hide all keys from a query, its output
  // is NaN.
  //
  // kInvalidArgument: shapes or dtypes do not match.
  absl::StatusOr<Tensor> Forward(const Tensor& query, const Tensor& key,
                                 const Tensor& value,
                                 const AttentionMasks& masks = {}) const;
  absl::StatusOr<Result> ForwardWithWeights(
      const Tensor& query, const Tensor& key, const Tensor& value,
      const AttentionMasks& masks = {}) const;

 private:
  // [n, heads, time, width of a head].
  struct Heads {
    Tensor query, key, value;
  };

  explicit MultiheadAttention(const Options& options) : options_(options) {}

  absl::Status CheckInputs(const Tensor& query, const Tensor& key,
                           const Tensor& value) const;
  absl::StatusOr<Heads> Project(const Tensor& query, const Tensor& key,
                                const Tensor& value) const;
  absl::StatusOr<Tensor> SplitHeads(const Tensor& x) const;
  absl::StatusOr<Tensor> JoinHeads(const Tensor& x) const;
  // Result::weights are those of each head, [n, heads, t, s].
  absl::StatusOr<Result> Attend(const Tensor& query, const Tensor& key,
                                const Tensor& value,
                                const AttentionMasks& masks) const;
  // Adds the masks to scores [n, heads, t, s].
  absl::StatusOr<Tensor> Mask(Tensor scores, const AttentionMasks& masks) const;

  const Options options_;
  Tensor in_proj_weight_;
  Tensor in_proj_bias_;
  Linear* out_proj_ = nullptr;
  Dropout* dropout_ = nullptr;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_MULTIHEAD_ATTENTION_H_
