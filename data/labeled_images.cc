#include "data/labeled_images.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {
namespace {

// Table from 0..255 to 0..1, so that each grey value is divided once.
const std::array<float, 256>& UnitInterval() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (int i = 0; i < 256; ++i) {
      values[static_cast<size_t>(i)] = static_cast<float>(i) / 255.0f;
    }
    return values;
  }();
  return table;
}

}  // namespace

absl::Status Validate(const LabeledImages& set, int64_t num_classes) {
  if (set.images.rank() != 3 || set.images.dtype() != tensor::DType::kU8) {
    return absl::InvalidArgumentError(absl::StrCat(
        "images must be u8 [n, height, width], not ", set.images.ToString()));
  }
  if (set.labels.rank() != 1 || set.labels.dtype() != tensor::DType::kI64 ||
      set.labels.dim(0) != set.images.dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels must be i64 [", set.images.dim(0),
                     "] to match the images, ", "not ", set.labels.ToString()));
  }
  const int64_t* labels = set.labels.data<int64_t>();
  for (int64_t i = 0; i < set.count(); ++i) {
    if (labels[i] < 0 || labels[i] >= num_classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", labels[i], " of sample ", i,
                       " is outside 0 to ", num_classes - 1));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LabeledImages> Range(const LabeledImages& set, int64_t begin,
                                    int64_t end) {
  if (begin < 0 || end < begin || end > set.count()) {
    return absl::OutOfRangeError(absl::StrCat("samples [", begin, ", ", end,
                                              ") of a set of ", set.count()));
  }
  ASSIGN_OR_RETURN(Tensor images, set.images.Slice(0, begin, end));
  ASSIGN_OR_RETURN(Tensor labels, set.labels.Slice(0, begin, end));
  return LabeledImages{std::move(images), std::move(labels)};
}

absl::StatusOr<Batch> GatherBatch(const LabeledImages& set,
                                  std::span<const int64_t> indices) {
  const int64_t pixels_per_image = set.images.dim(1) * set.images.dim(2);
  const auto n = static_cast<int64_t>(indices.size());
  Batch batch{
      Tensor::Empty({n, pixels_per_image}, {.dtype = tensor::DType::kF32}),
      Tensor::Empty({n}, {.dtype = tensor::DType::kI64})};
  const auto& table = UnitInterval();
  const uint8_t* images = set.images.data<uint8_t>();
  const int64_t* labels = set.labels.data<int64_t>();
  float* out = batch.pixels.data<float>();
  int64_t* out_labels = batch.labels.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    if (index < 0 || index >= set.count()) {
      return absl::OutOfRangeError(
          absl::StrCat("sample ", index, " of a set of ", set.count()));
    }
    const uint8_t* image = images + index * pixels_per_image;
    for (int64_t p = 0; p < pixels_per_image; ++p) {
      out[i * pixels_per_image + p] = table[image[p]];
    }
    out_labels[i] = labels[index];
  }
  return batch;
}

}  // namespace hawser::data
