#include "data/mnist.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/idx.h"

namespace hawser::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNumDigits = 10;

// Finds `name` or `name`.gz in `directory`.
std::optional<std::string> Find(const std::string& directory,
                                const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    std::error_code ignored;
    const fs::path path = fs::path(directory) / absl::StrCat(name, suffix);
    if (fs::exists(path, ignored)) return path.string();
  }
  return std::nullopt;
}

absl::StatusOr<LabeledImages> LoadPair(const std::string& directory,
                                       const std::string& prefix) {
  const std::string image_name = prefix + "-images-idx3-ubyte";
  const std::string label_name = prefix + "-labels-idx1-ubyte";
  const auto image_path = Find(directory, image_name);
  const auto label_path = Find(directory, label_name);
  for (const auto& [path, name] :
       {std::pair{image_path, image_name}, std::pair{label_path, label_name}}) {
    if (!path.has_value()) {
      return absl::NotFoundError(absl::StrCat(
          "missing file ", (fs::path(directory) / name).string(), "[.gz]"));
    }
  }
  ASSIGN_OR_RETURN(Tensor images, ReadIdx(*image_path));
  ASSIGN_OR_RETURN(Tensor raw_labels, ReadIdx(*label_path));
  ASSIGN_OR_RETURN(Tensor labels, raw_labels.To(tensor::DType::kI64));
  LabeledImages set{std::move(images), std::move(labels)};
  if (const absl::Status valid = Validate(set, kNumDigits); !valid.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        *image_path, " with ", *label_path, ": ", valid.message()));
  }
  return set;
}

}  // namespace

absl::StatusOr<DigitSplit> HoldOut(const LabeledImages& all, int64_t holdout) {
  if (holdout <= 0 || holdout >= all.count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot hold out ", holdout, " of ", all.count(),
        " samples: at least one must remain for training and one for testing"));
  }
  DigitSplit split;
  ASSIGN_OR_RETURN(split.train, Range(all, 0, all.count() - holdout));
  ASSIGN_OR_RETURN(split.test, Range(all, all.count() - holdout, all.count()));
  return split;
}

absl::StatusOr<DigitSplit> LoadMnist(const std::string& directory,
                                     int64_t holdout) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat("missing directory ", directory));
  }
  const bool has_train = Find(directory, "train-images-idx3-ubyte").has_value();
  if (holdout != 0) {
    ASSIGN_OR_RETURN(LabeledImages all,
                     LoadPair(directory, has_train ? "train" : "t10k"));
    return HoldOut(all, holdout);
  }
  DigitSplit split;
  if (!has_train && Find(directory, "t10k-images-idx3-ubyte").has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory,
                     " contains only the t10k files: set the number of their "
                     "samples to hold out for testing"));
  }
  ASSIGN_OR_RETURN(split.train, LoadPair(directory, "train"));
  ASSIGN_OR_RETURN(split.test, LoadPair(directory, "t10k"));
  return split;
}

}  // namespace hawser::data
