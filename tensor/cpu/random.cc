#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "absl/status/status.h"
#include "tensor/cpu/block_io.h"
#include "tensor/cpu/cpu_backend.h"

namespace hawser::tensor::cpu {
namespace {

// One block of Philox 4x32-10: 128 random bits for each (key, counter). Salmon
// et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter),
                               static_cast<uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round, k0 += kWeyl0, k1 += kWeyl1) {
    const uint64_t p0 = kMultiplier0 * c[0];
    const uint64_t p1 = kMultiplier1 * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1,
         static_cast<uint32_t>(p0)};
  }
  return c;
}

// The 64 random bits of number `position` of a seed: half a Philox block.
class BitSource {
 public:
  BitSource(uint64_t seed, uint64_t position)
      : seed_(seed), position_(position) {
    if (position_ % 2 != 0) block_ = Philox(seed_, position_ / 2);
  }

  // Those of the next position.
  std::array<uint32_t, 2> Next() {
    if (position_ % 2 == 0) block_ = Philox(seed_, position_ / 2);
    const size_t half = 2 * (position_++ % 2);
    return {block_[half], block_[half + 1]};
  }

 private:
  const uint64_t seed_;
  uint64_t position_;
  std::array<uint32_t, 4> block_ = {};
};

// In [0, 1), as fine as the type allows.
float Unit(const std::array<uint32_t, 2>& bits, float) {
  return static_cast<float>(bits[0] >> 8) * 0x1p-24f;
}
double Unit(const std::array<uint32_t, 2>& bits, double) {
  const uint64_t joined = uint64_t{bits[0]} << 32 | bits[1];
  return static_cast<double>(joined >> 11) * 0x1p-53;
}

template <class C>
C Draw(RandomKind kind, const std::array<uint32_t, 2>& bits, double a,
       double b) {
  const double u = static_cast<double>(Unit(bits, C{}));
  switch (kind) {
    case RandomKind::kUniform: {
      const C x = static_cast<C>(a + (b - a) * u);
      // Rounding may reach the bound that is not part of the range.
      return x < static_cast<C>(b) ? x : static_cast<C>(a);
    }
    case RandomKind::kNormal: {  // Box and Muller, 32 bits for each variable
      const double radius = std::sqrt(-2 * std::log((bits[0] + 0.5) * 0x1p-32));
      const double angle = 2 * std::numbers::pi * 0x1p-32 * bits[1];
      return static_cast<C>(a + b * radius * std::cos(angle));
    }
    case RandomKind::kBernoulli:
      return static_cast<C>(u < a);
  }
  return C{};
}

}  // namespace

absl::Status CpuBackend::Random(RandomKind kind, uint64_t seed, uint64_t offset,
                                double a, double b, Tensor& out) {
  VisitComputeType(out.dtype(), [&]<class C>() {
    // Integers, which only kBernoulli makes, are drawn as floats.
    using Drawn = std::conditional_t<std::is_same_v<C, double>, double, float>;
    std::array<C, kBlock> block;
    BitSource bits(seed, offset);
    for (int64_t i = 0; i < out.num_elements(); i += kBlock) {
      const int64_t n = std::min(kBlock, out.num_elements() - i);
      for (int64_t j = 0; j < n; ++j) {
        block[j] = static_cast<C>(Draw<Drawn>(kind, bits.Next(), a, b));
      }
      WriteBlock(out.dtype(), out.raw_data(), i, 1, n, block.data());
    }
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu
