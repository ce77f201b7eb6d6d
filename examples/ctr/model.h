// Models that predict clicks.

#ifndef HAWSER_EXAMPLES_CTR_MODEL_H_
#define HAWSER_EXAMPLES_CTR_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "data/tabular/sample_batches.h"
#include "data/tabular/samples.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/sequential.h"
#include "optim/rule_spec.h"
#include "ps/storage/table_spec.h"
#include "ps/training/sparse_model.h"
#include "tensor/tensor.h"

namespace hawser::examples::ctr {

// A logit for each sample, as the sum of
//
//   - a weight for each of its keys, and weights of the dense features;
//   - for DeepFM, the products of the embeddings of each pair of keys;
//   - the output of a perceptron, whose inputs are the embeddings of all keys
//     and the dense features.
//
// Weights and embeddings are multiplied by the values of their keys. Wide &
// Deep: Cheng et al., DLRS 2016, without crossed features. DeepFM: Guo et al.,
// IJCAI 2017.
class ClickModel final : public ps::SparseModel {
 public:
  struct Options {
    bool deep_fm = true;
    data::SampleWidth width = {};
    int64_t embedding_width = 8;
    // Widths of the perceptron's hidden layers.
    std::vector<int64_t> hidden = {64, 32};
    // Describe the tables but for their widths.
    ps::TableSpec wide_table = {};
    ps::TableSpec deep_table = {};
    // Of the layers.
    optim::RuleSpec dense_rule = {};
    uint64_t seed = 0;
  };

  static absl::StatusOr<std::unique_ptr<ClickModel>> Create(
      const Options& options);

  std::vector<ps::TableSpec> tables() const override;
  nn::Module* dense() override { return &dense_; }
  optim::RuleSpec dense_rule() const override { return options_.dense_rule; }
  absl::StatusOr<std::vector<Tensor>> Keys(
      const data::SampleBatch& batch) const override;
  absl::StatusOr<Tensor> Forward(const std::vector<Tensor>& rows,
                                 const data::SampleBatch& batch) const override;
  absl::StatusOr<Tensor> Loss(const Tensor& predictions,
                              const std::vector<Tensor>& rows,
                              const data::SampleBatch& batch) const override;

 private:
  class Dense final : public nn::Module {
   public:
    absl::Status Build(const Options& options);

    // Null without dense features.
    nn::Linear* wide = nullptr;
    nn::Sequential* deep = nullptr;
  };

  explicit ClickModel(const Options& options) : options_(options) {}

  const Options options_;
  Dense dense_;
};

}  // namespace hawser::examples::ctr

#endif  // HAWSER_EXAMPLES_CTR_MODEL_H_
