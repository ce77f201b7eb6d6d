#include "ps/storage/rows/stochastic_rounding.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ps/storage/key_hash.h"
#include "tensor/half.h"

namespace hawser::ps {
namespace {

// 32 bits that depend on all arguments.
uint32_t RandomBits(uint64_t salt, size_t position, uint32_t number) {
  const uint64_t mixed =
      HashKey(salt + (position + 1) * 0x9e3779b97f4a7c15u) ^ number;
  return static_cast<uint32_t>(HashKey(mixed) >> 32);
}

// The place of binary16's last bit in a binary32 with this exponent: 13 for
// normal numbers, more below 2^-14.
int DroppedBits(uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127;
  return exponent >= -14 ? 13 : 13 + (-14 - exponent);
}

// Adds `random` below the bits that are kept and cuts these off. The carry into
// the exponent is the next number.
uint32_t AddAndCut(uint32_t bits, uint32_t random, int dropped) {
  const uint32_t mask = (uint32_t{1} << dropped) - 1;
  return (bits + (random & mask)) & ~mask;
}

}  // namespace

void RoundStochastically(const float* source, size_t count, uint64_t salt,
                         tensor::BFloat16* dest) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(source[i]);
    if (!std::isfinite(source[i])) {
      dest[i] = tensor::BFloat16(source[i]);
      continue;
    }
    dest[i] = tensor::BFloat16::FromBits(static_cast<uint16_t>(
        AddAndCut(bits, RandomBits(salt, i, bits), 16) >> 16));
  }
}

void RoundStochastically(const float* source, size_t count, uint64_t salt,
                         tensor::Half* dest) {
  // The spacing of the smallest numbers.
  constexpr float kTiny = 0x1p-24f;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(source[i]);
    const uint32_t random = RandomBits(salt, i, bits);
    if (!std::isfinite(source[i])) {
      dest[i] = tensor::Half(source[i]);
      continue;
    }
    if (const int dropped = DroppedBits(bits); dropped <= 23) {
      dest[i] =
          tensor::Half(std::bit_cast<float>(AddAndCut(bits, random, dropped)));
      continue;
    }
    // Between zero and the smallest number.
    const float up = static_cast<float>(random) * 0x1p-32f * kTiny;
    dest[i] = tensor::Half(
        std::copysign(std::fabs(source[i]) > up ? kTiny : 0.0f, source[i]));
  }
}

}  // namespace hawser::ps
