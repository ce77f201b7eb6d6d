#include <cstdint>
#include <numbers>
#include <type_traits>

#include "absl/status/status.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/backend/uniform_limit.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

struct Block {
  uint32_t words[4];
};

// Philox 4x32-10 (Salmon et al., SC 2011), bit-identical to
// tensor/backend/cpu/random.cc.
__device__ Block Philox(uint64_t key, uint64_t counter) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter);
  uint32_t c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round, k0 += kWeyl0, k1 += kWeyl1) {
    const uint64_t p0 = kMultiplier0 * c0;
    const uint64_t p1 = kMultiplier1 * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
  }
  return {{c0, c1, c2, c3}};
}

// Returns a number in [0, 1) with the full precision of the drawn type.
__device__ double Unit(uint32_t high, uint32_t low, bool wide) {
  if (!wide) return static_cast<double>(high >> 8) * 0x1p-24;
  const uint64_t joined = uint64_t{high} << 32 | low;
  return static_cast<double>(joined >> 11) * 0x1p-53;
}

template <class T>
__global__ void RandomKernel(RandomKind kind, uint64_t seed, uint64_t offset,
                             double a, double b, double limit, int64_t count,
                             T* out) {
  constexpr bool kWide = std::is_same_v<T, double>;
  // Integers, which only kBernoulli supports, are drawn as floats.
  using Drawn = std::conditional_t<kWide, double, float>;
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    const uint64_t position = offset + static_cast<uint64_t>(i);
    const Block block = Philox(seed, position / 2);
    const uint32_t high = block.words[2 * (position % 2)];
    const uint32_t low = block.words[2 * (position % 2) + 1];
    const double u = Unit(high, low, kWide);
    Drawn value = 0;
    switch (kind) {
      case RandomKind::kUniform:
        // Not fused, so that the numbers equal those of the CPU.
        value = static_cast<Drawn>(__dadd_rn(a, __dmul_rn(b - a, u)));
        value = min(value, static_cast<Drawn>(limit));
        break;
      case RandomKind::kNormal: {
        const double radius = sqrt(-2 * log((high + 0.5) * 0x1p-32));
        const double angle = 2 * std::numbers::pi * 0x1p-32 * low;
        value = static_cast<Drawn>(a + b * radius * cos(angle));
        break;
      }
      case RandomKind::kBernoulli:
        value = u < a ? 1 : 0;
        break;
    }
    Store(out + i, value);
  }
}

}  // namespace

absl::Status CudaBackend::Random(RandomKind kind, uint64_t seed,
                                 uint64_t offset, double a, double b,
                                 Tensor& out) {
  const int64_t count = out.num_elements();
  if (count == 0) return absl::OkStatus();
  const DeviceGuard guard(out.device());
  const double limit =
      kind == RandomKind::kUniform ? UniformLimit(out.dtype(), a, b) : 0;
  const auto run = [&]<class T>() {
    RandomKernel<T><<<Blocks(count), kThreads, 0, kStream>>>(
        kind, seed, offset, a, b, limit, count, Out<T>(out));
    return LaunchStatus("random numbers");
  };
  if (out.dtype() == DType::kBool) return run.template operator()<bool>();
  return VisitNumber(out.dtype(), "random numbers", run);
}

}  // namespace hawser::tensor::cuda
