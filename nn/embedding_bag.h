#ifndef HAWSER_NN_EMBEDDING_BAG_H_
#define HAWSER_NN_EMBEDDING_BAG_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/module.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// Lookup of bags of ids. The result of a bag is the sum, mean or maximum of the
// table's rows of its ids; zeros for an empty bag.
//
// Parameter: "weight" [rows, width]. Initial values: standard normal.
class EmbeddingBag final : public Module {
 public:
  struct Options {
    int64_t rows = 0;
    int64_t width = 0;
    tensor::BagMode mode = tensor::BagMode::kMean;
    tensor::DType dtype = tensor::DType::kF32;
  };

  // kInvalidArgument: a size is not positive, or dtype is not floating point.
  static absl::StatusOr<std::unique_ptr<EmbeddingBag>> Create(
      const Options& options, tensor::Generator& generator);

  // ids [n], i64 or i32; offsets [bags], of the same dtype, nondecreasing and
  // beginning with 0. Bag i consists of the ids from offsets[i] to the start of
  // the next bag. Returns [bags, width].
  //
  // kOutOfRange: an id is not in [0, rows).
  absl::StatusOr<Tensor> Forward(const Tensor& ids,
                                 const Tensor& offsets) const;

  // ids [bags, n]: bags of equal length.
  absl::StatusOr<Tensor> Forward(const Tensor& ids) const;

 private:
  explicit EmbeddingBag(const Options& options) : options_(options) {}

  const Options options_;
  Tensor weight_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_EMBEDDING_BAG_H_
