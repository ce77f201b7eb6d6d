#include "data/npy_dataset.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {

absl::StatusOr<std::shared_ptr<const NpyDataset>> NpyDataset::Open(
    const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return absl::InvalidArgumentError("a data set needs at least one file");
  }
  std::vector<tensor::NpyRows> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(tensor::NpyRows file, tensor::NpyRows::Open(path));
    files.push_back(std::move(file));
    if (files.back().num_rows() != files[0].num_rows()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has ", files.back().num_rows(), " samples, but ",
                       paths[0], " has ", files[0].num_rows()));
    }
  }
  return std::shared_ptr<const NpyDataset>(new NpyDataset(std::move(files)));
}

absl::StatusOr<std::vector<Tensor>> NpyDataset::Fetch(
    std::span<const int64_t> indices) const {
  RETURN_IF_ERROR(CheckIndices(indices, count()));
  std::vector<Tensor> batch;
  batch.reserve(files_.size());
  for (const tensor::NpyRows& file : files_) {
    ASSIGN_OR_RETURN(Tensor rows, file.Read(indices));
    batch.push_back(std::move(rows));
  }
  return batch;
}

}  // namespace hawser::data
