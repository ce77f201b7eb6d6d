#include "ps/row_encoding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::hawser::tensor::Shape;
using ::testing::HasSubstr;

constexpr int64_t kRows = 50;
constexpr int64_t kWidth = 7;

// Rows of very different magnitudes.
std::vector<float> RandomRows() {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> rows;
  for (int64_t r = 0; r < kRows; ++r) {
    const float magnitude = std::pow(10.0f, static_cast<float>(r % 9 - 4));
    for (int64_t i = 0; i < kWidth; ++i) {
      rows.push_back(magnitude * uniform(random));
    }
  }
  return rows;
}

std::vector<float> RoundTrip(const std::vector<float>& rows, int64_t width,
                             RowEncoding encoding) {
  const auto count = static_cast<int64_t>(rows.size()) / width;
  const absl::StatusOr<Tensor> decoded =
      DecodeRows(EncodeRows(Tensor::FromVector(rows, {count, width}), encoding),
                 Shape({count, width}));
  EXPECT_THAT(decoded, IsOk());
  return decoded.ok() ? decoded->ToVector<float>() : std::vector<float>();
}

TEST(RowEncodingTest, NumbersAreRoundedWithinTheBoundOfTheEncoding) {
  const std::vector<float> rows = RandomRows();
  EXPECT_EQ(RoundTrip(rows, kWidth, RowEncoding::kF32), rows);
  const std::vector<float> f16 = RoundTrip(rows, kWidth, RowEncoding::kF16);
  const std::vector<float> bf16 = RoundTrip(rows, kWidth, RowEncoding::kBF16);
  const std::vector<float> i8 = RoundTrip(rows, kWidth, RowEncoding::kI8);
  ASSERT_EQ(f16.size(), rows.size());
  ASSERT_EQ(bf16.size(), rows.size());
  ASSERT_EQ(i8.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const float magnitude = std::abs(rows[i]);
    // Half of the last bit; below 2^-14, numbers of f16 are 2^-24 apart.
    EXPECT_LE(std::abs(f16[i] - rows[i]),
              std::max(magnitude, std::ldexp(1.0f, -14)) / 2048);
    EXPECT_LE(std::abs(bf16[i] - rows[i]), magnitude / 256);
    const float* const row = &rows[i / kWidth * kWidth];
    float largest = 0;
    for (int64_t k = 0; k < kWidth; ++k) {
      largest = std::max(largest, std::abs(row[k]));
    }
    EXPECT_LE(std::abs(i8[i] - rows[i]), largest / 127 * 0.5001f);
  }
}

TEST(RowEncodingTest, EncodedRowsTakeFewerBytes) {
  const Tensor rows = Tensor::Zeros({4, 16});
  EXPECT_EQ(EncodeRows(rows, RowEncoding::kF16)[0].dtype(), DType::kF16);
  EXPECT_EQ(EncodeRows(rows, RowEncoding::kBF16)[0].dtype(), DType::kBF16);
  const std::vector<Tensor> i8 = EncodeRows(rows, RowEncoding::kI8);
  ASSERT_EQ(i8.size(), 2);
  EXPECT_EQ(i8[0].dtype(), DType::kU8);
  EXPECT_EQ(i8[0].shape(), Shape({4, 16}));
  EXPECT_EQ(i8[1].shape(), Shape({4}));
}

TEST(RowEncodingTest, EightBitsKeepTheLargestNumberAndZero) {
  EXPECT_EQ(RoundTrip({127, -127, 0, 1}, 4, RowEncoding::kI8),
            (std::vector<float>{127, -127, 0, 1}));
  EXPECT_EQ(RoundTrip({0, 0, 0, 0}, 4, RowEncoding::kI8),
            std::vector<float>(4, 0));
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(RoundTrip({tiny, -tiny}, 2, RowEncoding::kI8),
            std::vector<float>(2, 0));
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> huge =
      RoundTrip({largest, -largest / 2}, 2, RowEncoding::kI8);
  EXPECT_NEAR(huge[0] / largest, 1, 1e-6);
  EXPECT_NEAR(huge[1] / largest, -0.5, 0.01);
}

TEST(RowEncodingTest, ANumberThatIsNotFiniteShowsInItsRowAlone) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows = RoundTrip(
      {1, infinity, 127, 1, nan, -infinity, 127, 2}, 2, RowEncoding::kI8);
  for (const size_t i : {0, 1, 4, 5}) EXPECT_TRUE(std::isnan(rows[i])) << i;
  for (const size_t i : {2, 6}) EXPECT_EQ(rows[i], 127) << i;
}

TEST(RowEncodingTest, ZerosNeedNotTravel) {
  const std::vector<Tensor> encoded = EncodeRows(
      Tensor::FromVector(std::vector<float>{0, 2, 0, 0, -3, 0}, {2, 3}),
      RowEncoding::kNonZero);
  ASSERT_EQ(encoded.size(), 2);
  EXPECT_EQ(encoded[0].ToVector<float>(), (std::vector<float>{2, -3}));
  EXPECT_EQ(encoded[1].ToVector<int64_t>(), (std::vector<int64_t>{1, 4}));
}

TEST(RowEncodingTest, OtherTensorsAreRefused) {
  const Shape shape({2, 3});
  const auto refused = [&](std::vector<Tensor> tensors) {
    EXPECT_THAT(DecodeRows(std::move(tensors), shape),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("rows must be")));
  };
  const Tensor codes = Tensor::Zeros({2, 3}, {.dtype = DType::kU8});
  const Tensor scales = Tensor::Zeros({2});
  refused({});
  refused({Tensor::Zeros({3, 2})});
  refused({Tensor::Zeros({2, 3}), scales});
  refused({Tensor::Zeros({2, 3}, {.dtype = DType::kF64})});
  refused({codes});
  refused({codes, Tensor::Zeros({3})});
  refused({codes, Tensor::Zeros({2}, {.dtype = DType::kF64})});
  refused({codes, scales, scales});
  EXPECT_THAT(DecodeRows({codes, scales}, shape), IsOk());
}

}  // namespace
}  // namespace hawser::ps
