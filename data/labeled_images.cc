#include "data/labeled_images.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {
namespace {

// Grey values as fractions of 255. Compilers turn loops of a fixed length into
// vector instructions.
void ScaleToUnit(const uint8_t* grey, int64_t count, float* out) {
  constexpr int64_t kBlock = 16;
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    std::array<float, kBlock> block;
    for (size_t i = 0; i < kBlock; ++i) {
      block[i] =
          static_cast<float>(grey[done + static_cast<int64_t>(i)]) / 255.0f;
    }
    std::memcpy(out + done, block.data(), sizeof(block));
  }
  for (; done < count; ++done) {
    out[done] = static_cast<float>(grey[done]) / 255.0f;
  }
}

// Begins to load an image into the cache: those of a batch lie anywhere in the
// data set.
void Prefetch(const uint8_t* image, int64_t bytes) {
  constexpr int64_t kLineBytes = 64;
  for (int64_t at = 0; at < bytes; at += kLineBytes) {
    __builtin_prefetch(image + at);
  }
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
  const uint8_t* images = set.images.data<uint8_t>();
  const int64_t* labels = set.labels.data<int64_t>();
  float* out = batch.pixels.data<float>();
  int64_t* out_labels = batch.labels.data<int64_t>();
  for (const int64_t index : indices) {
    if (index < 0 || index >= set.count()) {
      return absl::OutOfRangeError(
          absl::StrCat("sample ", index, " of a set of ", set.count()));
    }
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i + 1 < indices.size()) {
      Prefetch(images + indices[i + 1] * pixels_per_image, pixels_per_image);
    }
    const auto row = static_cast<int64_t>(i);
    ScaleToUnit(images + indices[i] * pixels_per_image, pixels_per_image,
                out + row * pixels_per_image);
    out_labels[i] = labels[indices[i]];
  }
  return batch;
}

}  // namespace hawser::data
