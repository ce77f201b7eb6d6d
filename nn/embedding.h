#ifndef HAWSER_NN_EMBEDDING_H_
#define HAWSER_NN_EMBEDDING_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "nn/module.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// Lookup of rows of a table: ids [...], i64 or i32, to [..., width].
//
// Parameter: "weight" [rows, width]. Initial values: standard normal. The row
// `padding_id`, if set, is initially zero and does not get a gradient.
class Embedding final : public Layer {
 public:
  struct Options {
    int64_t rows = 0;
    int64_t width = 0;
    std::optional<int64_t> padding_id = std::nullopt;
    tensor::DType dtype = tensor::DType::kF32;
  };

  // kInvalidArgument: a size is not positive, padding_id is not in [0, rows),
  // or dtype is not floating point.
  static absl::StatusOr<std::unique_ptr<Embedding>> Create(
      const Options& options, tensor::Generator& generator);

  // kOutOfRange: an id is not in [0, rows).
  absl::StatusOr<Tensor> Forward(const Tensor& ids) const override;

 private:
  explicit Embedding(const Options& options) : options_(options) {}

  const Options options_;
  Tensor weight_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_EMBEDDING_H_
