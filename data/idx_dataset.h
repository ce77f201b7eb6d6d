// A data set of IDX files.

#ifndef HAWSER_DATA_IDX_DATASET_H_
#define HAWSER_DATA_IDX_DATASET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/tensor_dataset.h"

namespace hawser::data {

// Reads IDX files, plain or gzip-compressed, whose element i is a part of
// sample i, such as the images and the labels of MNIST. A batch has a tensor
// for each file, of its dtype: images stay u8. The files are held in memory.
//
// Errors of ReadIdx (data/idx.h), and kInvalidArgument if there is no file, or
// if files differ in the number of samples.
absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadIdxDataset(
    const std::vector<std::string>& paths);

}  // namespace hawser::data

#endif  // HAWSER_DATA_IDX_DATASET_H_
