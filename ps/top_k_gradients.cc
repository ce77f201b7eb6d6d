#include "ps/top_k_gradients.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// NaN is larger than all numbers.
float Magnitude(float element) {
  return std::isnan(element) ? std::numeric_limits<float>::infinity()
                             : std::abs(element);
}

}  // namespace

int64_t TopKGradients::NumChosen(int64_t count) const {
  if (count == 0) return 0;
  return std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(density_ * static_cast<double>(count))), 1,
      count);
}

Tensor TopKGradients::Choose(const Tensor& gradient) {
  const auto count = static_cast<size_t>(gradient.num_elements());
  Tensor chosen = Tensor::Zeros(gradient.shape());
  if (count == 0) return chosen;
  if (!kept_.defined()) kept_ = Tensor::Zeros(gradient.shape());
  float* const kept = kept_.data<float>();
  const float* const added = gradient.data<float>();
  std::vector<float> magnitudes(count);
  for (size_t i = 0; i < count; ++i) {
    kept[i] += added[i];
    magnitudes[i] = Magnitude(kept[i]);
  }
  const int64_t k = NumChosen(gradient.num_elements());
  const auto smallest = magnitudes.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::nth_element(magnitudes.begin(), smallest, magnitudes.end(),
                   std::greater<>());
  const float threshold = *smallest;
  // Elements at the threshold that fit in, besides the larger ones.
  auto room = static_cast<size_t>(
      std::count(magnitudes.begin(), smallest + 1, threshold));
  float* const out = chosen.data<float>();
  for (size_t i = 0; i < count; ++i) {
    const float magnitude = Magnitude(kept[i]);
    if (magnitude < threshold) continue;
    if (magnitude == threshold) {
      if (room == 0) continue;
      --room;
    }
    out[i] = std::exchange(kept[i], 0.0f);
  }
  return chosen;
}

}  // namespace hawser::ps
