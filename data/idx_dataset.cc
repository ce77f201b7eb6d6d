#include "data/idx_dataset.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/idx.h"
#include "tensor/tensor.h"

namespace hawser::data {

absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadIdxDataset(
    const std::vector<std::string>& paths) {
  std::vector<Tensor> columns;
  columns.reserve(paths.size());
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(Tensor column, ReadIdx(path));
    columns.push_back(std::move(column));
    if (columns.back().dim(0) != columns[0].dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has ", columns.back().dim(0), " samples, but ",
                       paths[0], " has ", columns[0].dim(0)));
    }
  }
  return TensorDataset::Create(std::move(columns));
}

}  // namespace hawser::data
