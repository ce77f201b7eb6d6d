#include "examples/mnist_ps/digits.h"

#include "data/synthetic_digits.h"

namespace hawser::examples::mnist_ps {
namespace {

constexpr int64_t kDrawnSamples = 12000;
constexpr int64_t kDrawnHoldout = 2000;
constexpr uint64_t kDrawnSeed = 20;

}  // namespace

absl::StatusOr<data::DigitSplit> LoadDigits(const Options& options) {
  if (!options.data_dir.empty()) {
    return data::LoadMnist(options.data_dir, options.holdout);
  }
  return data::HoldOut(data::DrawDigits(kDrawnSamples, kDrawnSeed),
                       options.holdout > 0 ? options.holdout : kDrawnHoldout);
}

}  // namespace hawser::examples::mnist_ps
