#include "data/tabular/sample_dataset.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "async/status_macros.h"
#include "data/tabular/libsvm_reader.h"
#include "tensor/tensor.h"

namespace hawser::data {
namespace {

// Moves numbers to a tensor, so that they are in memory twice only for one
// column at a time.
template <class T>
Tensor ToTensor(std::vector<T> numbers, int64_t num_samples, int64_t width) {
  return Tensor::FromVector(numbers, {num_samples, width});
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadSampleDataset(
    SampleReader& reader) {
  Samples samples;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&samples));
    if (!more) break;
  }
  const int64_t n = samples.size();
  const SampleWidth& width = reader.width();
  return TensorDataset::Create(
      {ToTensor(std::move(samples.labels), n, 1),
       ToTensor(std::move(samples.dense), n, width.dense),
       ToTensor(std::move(samples.keys), n, width.keys),
       ToTensor(std::move(samples.values), n, width.keys)});
}

absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadLibsvmDataset(
    const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t width, LibsvmWidth(path));
  ASSIGN_OR_RETURN(const auto reader, LibsvmReader::Open(path, width));
  return ReadSampleDataset(*reader);
}

}  // namespace hawser::data
