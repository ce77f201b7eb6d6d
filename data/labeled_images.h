#ifndef HAWSER_DATA_LABELED_IMAGES_H_
#define HAWSER_DATA_LABELED_IMAGES_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::data {

// Grey images with one class label each.
//
//   images  [n, height, width] u8, contiguous, CPU; 0 is background.
//   labels  [n] i64, contiguous, CPU; each in [0, num_classes).
struct LabeledImages {
  Tensor images;
  Tensor labels;

  int64_t count() const { return images.dim(0); }
};

// Checks that `set` is as described above with `num_classes` classes.
// kInvalidArgument, naming the first wrong shape, dtype or label, if not.
absl::Status Validate(const LabeledImages& set, int64_t num_classes);

// Returns samples [begin, end), sharing memory with `set`. kOutOfRange if they
// do not all exist.
absl::StatusOr<LabeledImages> Range(const LabeledImages& set, int64_t begin,
                                    int64_t end);

// One batch, ready for a model.
//
//   pixels  [indices.size(), height * width] f32 in [0, 1].
//   labels  [indices.size()] i64.
struct Batch {
  Tensor pixels;
  Tensor labels;
};

// Copies the samples at `indices`, in that order. kOutOfRange names an index
// that `set` does not have.
absl::StatusOr<Batch> GatherBatch(const LabeledImages& set,
                                  std::span<const int64_t> indices);

}  // namespace hawser::data

#endif  // HAWSER_DATA_LABELED_IMAGES_H_
