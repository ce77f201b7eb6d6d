// Data sets of the samples of readers.

#ifndef HAWSER_DATA_TABULAR_SAMPLE_DATASET_H_
#define HAWSER_DATA_TABULAR_SAMPLE_DATASET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/tabular/samples.h"
#include "data/tensor_dataset.h"

namespace hawser::data {

// Reads all samples into memory; SampleBatches (data/tabular/sample_batches.h)
// instead streams those that do not fit. For samples of width w, a batch of n
// has the tensors
//
//   0  labels  f32 [n, 1]
//   1  dense   f32 [n, w.dense]
//   2  keys    i64 [n, w.keys]
//   3  values  f32 [n, w.keys]
//
// as in SampleBatch, but without ideal predictions. Errors are those of the
// reader.
absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadSampleDataset(
    SampleReader& reader);

// The same for a file in the format of libsvm, plain or gzip-compressed, which
// is read twice: samples are as wide as the longest line. Errors of
// LibsvmReader and LibsvmWidth (data/tabular/libsvm_reader.h).
absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadLibsvmDataset(
    const std::string& path);

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_SAMPLE_DATASET_H_
