#include "tensor/cpu/convert.h"

#include <cstddef>
#include <cstdint>

#include "tensor/cpu/vector_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/cpu/convert.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Bf16ToFloat(const uint16_t* HWY_RESTRICT in, float* HWY_RESTRICT out,
                 size_t count) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du32;
  const hn::Rebind<uint16_t, decltype(df)> du16;
  size_t i = 0;
  for (; i + hn::Lanes(df) <= count; i += hn::Lanes(df)) {
    const auto wide = hn::PromoteTo(du32, hn::LoadU(du16, in + i));
    hn::StoreU(hn::BitCast(df, hn::ShiftLeft<16>(wide)), df, out + i);
  }
  for (; i < count; ++i) out[i] = float(BFloat16::FromBits(in[i]));
}

void FloatToBf16(const float* HWY_RESTRICT in, uint16_t* HWY_RESTRICT out,
                 size_t count) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du32;
  const hn::RebindToSigned<decltype(df)> di32;
  const hn::Rebind<uint16_t, decltype(df)> du16;
  size_t i = 0;
  for (; i + hn::Lanes(df) <= count; i += hn::Lanes(df)) {
    const auto value = hn::LoadU(df, in + i);
    const auto bits = hn::BitCast(du32, value);
    const auto top = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(top, hn::Set(du32, 1));
    const auto nearest = hn::ShiftRight<16>(
        hn::Add(bits, hn::Add(odd, hn::Set(du32, 0x7fff))));
    const auto quiet = hn::Or(top, hn::Set(du32, 0x40));
    const auto result =
        hn::IfThenElse(hn::RebindMask(du32, hn::IsNaN(value)), quiet, nearest);
    hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di32, result)), du16, out + i);
  }
  for (; i < count; ++i) out[i] = BFloat16(in[i]).bits;
}

// The instructions that convert f16 come with AVX2; below it the scalar code
// is as good.
void HalfToFloat(const uint16_t* HWY_RESTRICT in, float* HWY_RESTRICT out,
                 size_t count) {
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> df16;
  const auto* source = reinterpret_cast<const hwy::float16_t*>(in);
  for (; i + hn::Lanes(df) <= count; i += hn::Lanes(df)) {
    hn::StoreU(hn::PromoteTo(df, hn::LoadU(df16, source + i)), df, out + i);
  }
#endif
  for (; i < count; ++i) out[i] = float(Half::FromBits(in[i]));
}

void FloatToHalf(const float* HWY_RESTRICT in, uint16_t* HWY_RESTRICT out,
                 size_t count) {
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> df16;
  auto* target = reinterpret_cast<hwy::float16_t*>(out);
  for (; i + hn::Lanes(df) <= count; i += hn::Lanes(df)) {
    hn::StoreU(hn::DemoteTo(df16, hn::LoadU(df, in + i)), df16, target + i);
  }
#endif
  for (; i < count; ++i) out[i] = Half(in[i]).bits;
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::tensor::cpu {

HWY_EXPORT(Bf16ToFloat);
HWY_EXPORT(FloatToBf16);
HWY_EXPORT(HalfToFloat);
HWY_EXPORT(FloatToHalf);

static_assert(sizeof(BFloat16) == sizeof(uint16_t));
static_assert(sizeof(Half) == sizeof(uint16_t));

void ToFloat(const BFloat16* in, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(Bf16ToFloat)
  (reinterpret_cast<const uint16_t*>(in), out, static_cast<size_t>(count));
}

void ToFloat(const Half* in, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(HalfToFloat)
  (reinterpret_cast<const uint16_t*>(in), out, static_cast<size_t>(count));
}

void FromFloat(const float* in, BFloat16* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(FloatToBf16)
  (in, reinterpret_cast<uint16_t*>(out), static_cast<size_t>(count));
}

void FromFloat(const float* in, Half* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(FloatToHalf)
  (in, reinterpret_cast<uint16_t*>(out), static_cast<size_t>(count));
}

}  // namespace hawser::tensor::cpu
#endif  // HWY_ONCE
