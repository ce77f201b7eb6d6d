#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "absl/status/status.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/vector_philox.h"
#include "tensor/backend/uniform_limit.h"

namespace hawser::tensor::cpu {
namespace {

// The 64 random bits of one element: half a Philox block.
using Bits = std::array<uint32_t, 2>;

// Space for the bits of kBlock elements that start within a Philox block.
using BitBlock = std::array<Bits, kBlock + 2>;

// Returns the bits of positions [position, position + n) of the seed's stream.
// The result points into `buffer`.
const Bits* ReadBits(uint64_t seed, uint64_t position, int64_t n,
                     BitBlock& buffer) {
  const auto skipped = static_cast<int64_t>(position % 2);
  static_assert(sizeof(Bits) == 2 * sizeof(uint32_t));
  PhiloxBlocks(seed, position / 2, (n + skipped + 1) / 2,
               reinterpret_cast<uint32_t*>(buffer.data()));
  return buffer.data() + skipped;
}

// Returns a number in [0, 1) with the full precision of the type.
float Unit(const Bits& bits, float) {
  return static_cast<float>(bits[0] >> 8) * 0x1p-24f;
}
double Unit(const Bits& bits, double) {
  const uint64_t joined = uint64_t{bits[0]} << 32 | bits[1];
  return static_cast<double>(joined >> 11) * 0x1p-53;
}

// In [low, limit], as far as rounding to the dtype of `limit` goes.
template <class C>
void DrawUniform(const Bits* bits, int64_t n, double low, double high,
                 double limit, C* out) {
  for (int64_t i = 0; i < n; ++i) {
    const double u = static_cast<double>(Unit(bits[i], C{}));
    const C x = static_cast<C>(low + (high - low) * u);
    out[i] = std::min(x, static_cast<C>(limit));
  }
}

// Box-Muller transform, with 32 bits for each of the two variables.
template <class C>
void DrawNormal(const Bits* bits, int64_t n, double mean, double stddev,
                C* out) {
  for (int64_t i = 0; i < n; ++i) {
    const double radius =
        std::sqrt(-2 * std::log((bits[i][0] + 0.5) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * 0x1p-32 * bits[i][1];
    out[i] = static_cast<C>(mean + stddev * radius * std::cos(angle));
  }
}

// Whether Unit() of the bits, as a double for f64 and as a float otherwise, is
// below `probability`. Unit() is a multiple of 2^-24, so integer comparison
// gives the same result.
template <class C>
void DrawBernoulli(const Bits* bits, int64_t n, double probability, C* out) {
  if constexpr (std::is_same_v<C, double>) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = Unit(bits[i], double{}) < probability ? 1 : 0;
    }
  } else {
    const auto limit = static_cast<uint32_t>(std::ceil(probability * 0x1p24));
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<C>(bits[i][0] >> 8 < limit ? 1 : 0);
    }
  }
}

}  // namespace

absl::Status CpuBackend::Random(RandomKind kind, uint64_t seed, uint64_t offset,
                                double a, double b, Tensor& out) {
  VisitComputeType(out.dtype(), [&]<class C>() {
    BitBlock buffer;
    std::array<C, kBlock> block;
    for (int64_t i = 0; i < out.num_elements(); i += kBlock) {
      const int64_t n = std::min(kBlock, out.num_elements() - i);
      const Bits* const bits =
          ReadBits(seed, offset + static_cast<uint64_t>(i), n, buffer);
      // The only kind supported for integers.
      if (kind == RandomKind::kBernoulli) {
        DrawBernoulli(bits, n, a, block.data());
      } else if constexpr (std::is_floating_point_v<C>) {
        if (kind == RandomKind::kUniform) {
          DrawUniform(bits, n, a, b, UniformLimit(out.dtype(), a, b),
                      block.data());
        } else {
          DrawNormal(bits, n, a, b, block.data());
        }
      }
      WriteBlock(out.dtype(), out.raw_data(), i, 1, n, block.data());
    }
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu
