// The functions of vector_philox.h, compiled for each instruction set
// by vector_kernels.cc.

#if defined(HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_INL_H_
#undef HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_INL_H_
#else
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "tensor/backend/cpu/vector_philox.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::tensor::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using WordTag = hn::ScalableTag<uint32_t>;
using WordVec = hn::Vec<WordTag>;

struct Product {
  WordVec high, low;
};

HWY_INLINE Product Multiply(WordVec a, WordVec b) {
  const WordTag d;
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = uint64_t{hn::GetLane(a)} * hn::GetLane(b);
  return {hn::Set(d, static_cast<uint32_t>(product >> 32)),
          hn::Set(d, static_cast<uint32_t>(product))};
#else
  const hn::RepartitionToWide<WordTag> wide;
  const auto even = hn::MulEven(a, b);
  const auto odd =
      hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))),
                  hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, b))));
  return {hn::OddEven(hn::BitCast(d, odd),
                      hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)),
                      hn::BitCast(d, even))};
#endif
}

// Computes one block per lane, for counters from `counter` on; writes 4 *
// Lanes() words.
HWY_INLINE void RunLanes(uint64_t key, uint64_t counter, uint32_t* words) {
  const WordTag d;
  const WordVec low = hn::Set(d, static_cast<uint32_t>(counter));
  const WordVec high = hn::Set(d, static_cast<uint32_t>(counter >> 32));
  WordVec c0 = hn::Add(low, hn::Iota(d, 0));
  // The low word has wrapped around if it is less than before.
  const WordVec carry = hn::VecFromMask(d, hn::Lt(c0, low));
  WordVec c1 = hn::Sub(high, carry);
  WordVec c2 = hn::Zero(d), c3 = hn::Zero(d);
  const WordVec multiplier0 = hn::Set(d, 0xD2511F53u);
  const WordVec multiplier1 = hn::Set(d, 0xCD9E8D57u);
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Product p0 = Multiply(multiplier0, c0);
    const Product p1 = Multiply(multiplier1, c2);
    c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(d, k0));
    c1 = p1.low;
    c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(d, k1));
    c3 = p0.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
}

void PhiloxBlocks(uint64_t key, uint64_t counter, size_t blocks,
                  uint32_t* words) {
  const size_t lanes = hn::Lanes(WordTag());
  size_t i = 0;
  for (; i + lanes <= blocks; i += lanes) {
    RunLanes(key, counter + i, words + 4 * i);
  }
  if (i == blocks) return;
  HWY_ALIGN uint32_t rest[4 * HWY_MAX_BYTES / sizeof(uint32_t)];
  RunLanes(key, counter + i, rest);
  std::copy_n(rest, 4 * (blocks - i), words + 4 * i);
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::tensor::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::tensor::cpu {

HWY_EXPORT(PhiloxBlocks);

void PhiloxBlocks(uint64_t key, uint64_t counter, int64_t blocks,
                  uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(PhiloxBlocks)
  (key, counter, static_cast<size_t>(blocks), words);
}

}  // namespace hawser::tensor::cpu
#endif  // HWY_ONCE

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_INL_H_
