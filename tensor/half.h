// 16-bit floating-point storage types. Arithmetic is done in float.

#ifndef HAWSER_TENSOR_HALF_H_
#define HAWSER_TENSOR_HALF_H_

#include <bit>
#include <cstdint>

namespace hawser::tensor {

// IEEE 754 binary16. Conversion from float rounds to nearest even, overflows to
// infinity, and turns NaN into a quiet NaN.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  constexpr explicit Half(float value) : bits(FromFloat(value)) {}
  static constexpr Half FromBits(uint16_t bits) {
    Half half;
    half.bits = bits;
    return half;
  }
  constexpr explicit operator float() const;
  // IEEE comparison: -0 equals 0, and NaN is unequal to everything.
  friend constexpr bool operator==(Half a, Half b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }

 private:
  static constexpr uint16_t FromFloat(float value);
};

// bfloat16: the upper 16 bits of a binary32. Conversion from float rounds to
// nearest even and turns NaN into a quiet NaN.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(FromFloat(value)) {}
  static constexpr BFloat16 FromBits(uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  // IEEE comparison: -0 equals 0, and NaN is unequal to everything.
  friend constexpr bool operator==(BFloat16 a, BFloat16 b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }

 private:
  static constexpr uint16_t FromFloat(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const uint32_t quiet = (u >> 16) | 0x40u;
    return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet
                                                                 : rounded);
  }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

constexpr Half::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) {  // Infinity or NaN, made quiet as the hardware does.
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  if (exponent == 0) {  // Zero or subnormal: mantissa * 2^-24, exact in float.
    const float magnitude =
        static_cast<float>(mantissa) * std::bit_cast<float>(0x33800000u);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (mantissa << 13));
}

constexpr uint16_t Half::FromFloat(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  uint32_t result = 0;
  if (magnitude > 0x7f800000u) {  // NaN: payload truncated, made quiet.
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // Rounds to 2^16 or more.
    result = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal. Adding 0.5 aligns its last bit with
    // that of a float in [0.5, 1), so that the addition itself rounds.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    result = std::bit_cast<uint32_t>(sum) - 0x3f000000u;
  } else {
    const uint32_t odd = (magnitude >> 13) & 1u;
    result = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  }
  return static_cast<uint16_t>(sign | result);
}

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_HALF_H_
