#include "ps/storage/rows/initial_row.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

#include "ps/storage/key_hash.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {
namespace {

// Two independent numbers, uniform in [0, 1), with 32 bits.
struct Pair {
  double first;
  double second;
};

// Numbers `2 * index` and `2 * index + 1` of a row's sequence: SplitMix64 from
// a start that depends on the row.
Pair Draw(uint64_t start, uint64_t index) {
  const uint64_t bits = HashKey(start + (index + 1) * 0x9e3779b97f4a7c15u);
  return {static_cast<double>(bits >> 32) * 0x1p-32,
          static_cast<double>(bits & 0xffffffffu) * 0x1p-32};
}

// Box and Muller, 1958.
Pair Normal(Pair uniform) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform.first));
  const double angle = 2 * std::numbers::pi * uniform.second;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

void WriteInitialRow(const Initializer& initializer, uint64_t seed,
                     uint64_t key, std::span<float> weights) {
  if (initializer.kind == Initializer::Kind::kConstant) {
    std::fill(weights.begin(), weights.end(),
              static_cast<float>(initializer.a));
    return;
  }
  const bool normal = initializer.kind == Initializer::Kind::kNormal;
  const double scale = normal ? initializer.b : initializer.b - initializer.a;
  const uint64_t start = HashKey(HashKey(seed) ^ key);
  for (size_t i = 0; i < weights.size(); i += 2) {
    const Pair uniform = Draw(start, i / 2);
    const Pair drawn = normal ? Normal(uniform) : uniform;
    weights[i] = static_cast<float>(initializer.a + scale * drawn.first);
    if (i + 1 == weights.size()) break;
    weights[i + 1] = static_cast<float>(initializer.a + scale * drawn.second);
  }
}

}  // namespace hawser::ps
