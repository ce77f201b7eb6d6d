#include "data/labeled_images_dataset.h"

#include "async/status_macros.h"

namespace hawser::data {

absl::StatusOr<std::vector<Tensor>> LabeledImagesDataset::Fetch(
    std::span<const int64_t> indices) const {
  ASSIGN_OR_RETURN(const Batch batch, GatherBatch(images_, indices));
  return std::vector<Tensor>{batch.pixels, batch.labels};
}

}  // namespace hawser::data
