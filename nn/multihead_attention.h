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

// Positions that a query must ignore: true in a bool mask, or numbers of any
// floating dtype that are added to the scores and get a gradient if they
// require one. An undefined tensor masks nothing.
struct AttentionMasks {
  Tensor attention = {};  // [t, s] or [n * num_heads, t, s], bool or floating.
  Tensor padding = {};    // [n, s], bool: keys that are padding.
};

// Scaled dot-product attention with several heads (Vaswani et al., 2017), as
// PyTorch's module of this name.
//
// Parameters, e being embed_dim: "in_proj_weight" [3 e, e] (queries, keys,
// values), Xavier-uniform at first; "in_proj_bias" [3 e], zero;
// "out_proj.weight" [e, e] as of Linear; "out_proj.bias" [e], zero.
class MultiheadAttention final : public Module {
 public:
  struct Options {
    int64_t embed_dim = 0;
    int64_t num_heads = 1;  // Divides embed_dim.
    double dropout = 0;     // Of the attention weights.
    bool bias = true;
    // Whether sequences are [n, time, e] and not [time, n, e].
    bool batch_first = false;
    tensor::DType dtype = tensor::DType::kF32;
  };

  struct Result {
    Tensor output;   // As the query.
    Tensor weights;  // [n, t, s], averaged over heads; of ForwardWithWeights.
  };

  // The generator gives the first values and, later, what is dropped.
  //
  // kInvalidArgument: a size is not above 0, num_heads does not divide
  // embed_dim, or another option is out of range.
  static absl::StatusOr<std::unique_ptr<MultiheadAttention>> Create(
      const Options& options, std::shared_ptr<tensor::Generator> generator);

  // Queries [t, n, e], keys and values [s, n, e], or with the first two dims
  // exchanged if batch_first. A query that may see no key gives NaN.
  //
  // kInvalidArgument: shapes or dtypes do not fit.
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
  // With the weights of each head, [n, heads, t, s].
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
