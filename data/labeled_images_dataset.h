// A data set of grey images with class labels.

#ifndef HAWSER_DATA_LABELED_IMAGES_DATASET_H_
#define HAWSER_DATA_LABELED_IMAGES_DATASET_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/labeled_images.h"
#include "tensor/tensor.h"

namespace hawser::data {

// Images ready for a model: Fetch gives the two tensors of a Batch
// (data/labeled_images.h), pixels f32 [n, height * width] in [0, 1] and labels
// i64 [n].
//
// Thread-safe. Shares the memory of `images`, which must be as LabeledImages
// describes.
class LabeledImagesDataset final : public Dataset {
 public:
  explicit LabeledImagesDataset(LabeledImages images)
      : images_(std::move(images)) {}

  int64_t count() const override { return images_.count(); }
  absl::StatusOr<std::vector<Tensor>> Fetch(
      std::span<const int64_t> indices) const override;

 private:
  const LabeledImages images_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_LABELED_IMAGES_DATASET_H_
