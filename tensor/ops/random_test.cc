#include "tensor/ops/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using async::StatusIs;

struct Statistics {
  double mean, deviation, least, greatest;
};

Statistics Of(const Tensor& t) {
  const std::vector<double> x = Values(t);
  const double n = static_cast<double>(x.size());
  double sum = 0, squares = 0;
  for (const double v : x) sum += v;
  for (const double v : x) squares += (v - sum / n) * (v - sum / n);
  const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
  return {sum / n, std::sqrt(squares / n), *least, *greatest};
}

TEST(RandomTest, DistributionsHaveTheirMoments) {
  for (const DType dtype : kFloatDTypes) {
    Generator generator(42);
    const Statistics uniform =
        Of(*Uniform({100, 400}, -1, 3, generator, {dtype}));
    EXPECT_NEAR(uniform.mean, 1, 0.03);
    EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), 0.02);
    EXPECT_GE(uniform.least, -1);
    EXPECT_LT(uniform.greatest, 3);
    const Statistics normal = Of(*Normal({40000}, 2, 0.5, generator, {dtype}));
    EXPECT_NEAR(normal.mean, 2, 0.02);
    EXPECT_NEAR(normal.deviation, 0.5, 0.02);
    EXPECT_GT(normal.greatest, 3.5);
    EXPECT_LT(normal.greatest, 5);
    const Statistics coins = Of(*Bernoulli({40000}, 0.3, generator, {dtype}));
    EXPECT_NEAR(coins.mean, 0.3, 0.01);
    EXPECT_EQ(coins.least, 0);
    EXPECT_EQ(coins.greatest, 1);
  }
}

TEST(RandomTest, AStreamGoesOnFromItsOffset) {
  Generator whole(7), first(7);
  const std::vector<double> all = Values(*Uniform({10}, 0, 1, whole));
  std::vector<double> parts = Values(*Uniform({3}, 0, 1, first));
  EXPECT_EQ(first.offset(), 3u);
  Generator second(first.seed(), first.offset());
  const std::vector<double> rest = Values(*Uniform({7}, 0, 1, second));
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, all);
  Generator other(8);
  EXPECT_NE(Values(*Uniform({10}, 0, 1, other)), all);
}

// The bits of number `position`, by the algorithm written out for one block.
uint64_t PhiloxBits(uint64_t key, uint64_t position) {
  const uint64_t counter = position / 2;
  uint32_t k[2] = {static_cast<uint32_t>(key),
                   static_cast<uint32_t>(key >> 32)};
  uint32_t c[4] = {static_cast<uint32_t>(counter),
                   static_cast<uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c[0] = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0];
    c[1] = static_cast<uint32_t>(p1);
    c[2] = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1];
    c[3] = static_cast<uint32_t>(p0);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  const size_t half = 2 * (position % 2);
  return uint64_t{c[half]} << 32 | c[half + 1];
}

TEST(RandomTest, EveryPositionHasItsOwnBits) {
  constexpr uint64_t kSeed = 0x0123456789abcdef;
  // Across the carry of the counter's low word, and the end of a block.
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{77}, (uint64_t{1} << 33) - 41}) {
    Generator generator(kSeed, offset);
    const auto u =
        Uniform({1301}, 0, 1, generator, {DType::kF64})->ToVector<double>();
    for (size_t i = 0; i < u.size(); ++i) {
      const uint64_t bits = PhiloxBits(kSeed, offset + i);
      ASSERT_EQ(u[i], static_cast<double>(bits >> 11) * 0x1p-53)
          << offset << " + " << i;
    }
  }
}

// From the known-answer tests that Random123 publishes for philox4x32-10.
TEST(RandomTest, BitsAreThoseOfPhilox) {
  Generator zero(0);
  const Tensor u = *Uniform({2}, 0, 1, zero, {DType::kF64});
  const uint64_t words[] = {0x6627e8d5e169c58d, 0xbc57ac4c9b00dbd8};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(u.ToVector<double>()[i],
              static_cast<double>(words[i] >> 11) * 0x1p-53);
  }
}

TEST(RandomTest, RandPermIsAPermutation) {
  Generator generator(3);
  for (const int64_t n : {0, 1, 2, 1000}) {
    std::vector<int64_t> p = RandPerm(n, generator)->ToVector<int64_t>();
    std::vector<int64_t> sorted = p;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(sorted[i], i);
    if (n == 1000) {
      EXPECT_NE(p, sorted);
    }
  }
}

TEST(RandomTest, UniformStaysBelowItsUpperEnd) {
  const std::pair<double, double> ranges[] = {
      {0, 1},     {-1, 0},       {1, 1.0625}, {-3, -2.5},
      {254, 256}, {2046, 2048},  {0, 256.5},  {0x1p24 - 1, 0x1p24},
      {0, 1e-7},  {-1e-7, 1e-7}, {0, 0.1},    {0x1p53 - 1, 0x1p53}};
  for (const DType dtype : kFloatDTypes) {
    for (const auto& [low, high] : ranges) {
      // Where `dtype` has a number in the range.
      if (Values(FromValues({low}, {1}, dtype))[0] >= high) continue;
      Generator generator(5);
      const Statistics drawn =
          Of(*Uniform({4096}, low, high, generator, {dtype}));
      EXPECT_LT(drawn.greatest, high) << dtype << " from " << low;
    }
  }
}

TEST(RandomTest, EdgesOfTheRanges) {
  Generator generator(1);
  ExpectTensor(*Uniform({2}, 4, 4, generator), {2}, {4, 4});
  ExpectTensor(*Normal({2}, 4, 0, generator), {2}, {4, 4});
  ExpectTensor(*Bernoulli({2}, 0, generator), {2}, {0, 0});
  ExpectTensor(*Bernoulli({2}, 1, generator, {DType::kBool}), {2}, {1, 1});
  EXPECT_EQ(Uniform({0, 3}, 0, 1, generator)->shape(), Shape({0, 3}));
  EXPECT_EQ(Uniform({}, 0, 1, generator)->shape(), Shape());
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Uniform({2}, 1, 0, generator), StatusIs(kBad));
  EXPECT_THAT(Uniform({2}, nan, 0, generator), StatusIs(kBad));
  EXPECT_THAT(Uniform({2}, 0, 1, generator, {DType::kI64}), StatusIs(kBad));
  EXPECT_THAT(Normal({2}, 0, -1, generator), StatusIs(kBad));
  EXPECT_THAT(Bernoulli({2}, 1.5, generator), StatusIs(kBad));
  EXPECT_THAT(Bernoulli({2}, nan, generator), StatusIs(kBad));
  EXPECT_THAT(RandPerm(-1, generator), StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
