#ifndef HAWSER_DATA_MNIST_H_
#define HAWSER_DATA_MNIST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "data/labeled_images.h"

namespace hawser::data {

// Training digits and test digits.
struct DigitSplit {
  LabeledImages train;
  LabeledImages test;
};

// Reads the MNIST files of `directory`: `train-images-idx3-ubyte` and
// `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
// `t10k-labels-idx1-ubyte`, each plain or with the suffix `.gz`.
//
// With `holdout` above 0, the last `holdout` samples of the training files are
// kept for testing, or of the t10k files if only those exist. With `holdout` 0
// both pairs are required.
//
//   kNotFound         a file is missing; the message names it.
//   kInvalidArgument  a file is damaged, images and labels do not match, or
//                     `holdout` leaves no samples for training.
absl::StatusOr<DigitSplit> LoadMnist(const std::string& directory,
                                     int64_t holdout);

// Keeps the last `holdout` samples of `all` for testing. kInvalidArgument
// unless 0 < holdout < all.count().
absl::StatusOr<DigitSplit> HoldOut(const LabeledImages& all, int64_t holdout);

}  // namespace hawser::data

#endif  // HAWSER_DATA_MNIST_H_
