#include "tensor/ops/in_place.h"

#include <cmath>
#include <limits>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::HasSubstr;

// What a and b become by f, b broadcasting.
template <class F>
std::vector<double> Combined(const Tensor& a, const Tensor& b, F f) {
  const std::vector<double> x = Values(a), y = Values(b);
  std::vector<double> result;
  ForEachIndex(a.shape(), [&](const std::vector<int64_t>& index) {
    const double left = x[PositionOf(index, a.shape())];
    result.push_back(f(left, y[PositionOf(index, b.shape())]));
  });
  return result;
}

TEST(InPlaceTest, WritesThroughViewsAndBumpsTheVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& b_shape : {Shape{3, 5}, Shape{5}, Shape{}}) {
      const Tensor a = TestTensor({3, 5}, dtype, 1);
      const Tensor b = TestTensor(b_shape, dtype, 2);
      const auto sums =
          Combined(a, b, [](double x, double y) { return x + 0.5 * y; });
      const auto products =
          Combined(a, b, [](double x, double y) { return x * y; });
      for (Tensor& x : Layouts(*a.Clone())) {
        const uint64_t version = x.version();
        ASSERT_THAT(AddInPlace(x, b, 0.5), IsOk());
        EXPECT_GT(x.version(), version);
        ExpectTensor(x, a.shape(), sums);
      }
      for (Tensor& x : Layouts(*a.Clone())) {
        ASSERT_THAT(MulInPlace(x, b), IsOk());
        ExpectTensor(x, a.shape(), products);
      }
    }
  }
}

TEST(InPlaceTest, LeavesNeighboursAlone) {
  Tensor whole = Tensor::Zeros({4, 6});
  Tensor part = *whole.Slice(1, 1, 6, 2);
  ASSERT_THAT(FillInPlace(part, 3), IsOk());
  ASSERT_THAT(AddInPlace(part, Tensor::Ones({3})), IsOk());
  ASSERT_THAT(MulScalarInPlace(part, 0.5), IsOk());
  const double row[] = {0, 2, 0, 2, 0, 2};
  std::vector<double> expected;
  for (int i = 0; i < 24; ++i) expected.push_back(row[i % 6]);
  ExpectTensor(whole, {4, 6}, expected);
}

TEST(InPlaceTest, AddsLongRunsAndNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : kFloatDTypes) {
    for (const double alpha : {1.0, -0.25}) {
      Tensor a = TestTensor({1037}, dtype, 1);
      std::vector<double> values = Values(TestTensor({1037}, dtype, 2));
      values[5] = values[1036] = nan;
      const Tensor b = FromValues(values, {1037}, dtype);
      const auto expected =
          Combined(a, b, [alpha](double x, double y) { return x + alpha * y; });
      ASSERT_THAT(AddInPlace(a, b, alpha), IsOk());
      ExpectTensor(a, {1037}, expected);
    }
  }
}

TEST(InPlaceTest, AddsATensorToItself) {
  Tensor a = TestTensor({1000});
  const auto expected =
      Combined(a, a, [](double x, double y) { return x + y; });
  ASSERT_THAT(AddInPlace(a, a), IsOk());
  ExpectTensor(a, {1000}, expected);
}

TEST(InPlaceTest, FillsEveryDType) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
                            DType::kI64, DType::kI32, DType::kU8}) {
    for (const double value : {0.0, 7.0}) {
      for (Tensor& x : Layouts(TestTensor({2, 3}, dtype, 1, 1, 5))) {
        ASSERT_THAT(FillInPlace(x, value), IsOk());
        ExpectTensor(x, {2, 3}, std::vector<double>(6, value));
      }
    }
  }
  Tensor flags = Tensor::Zeros({2}, {DType::kBool});
  ASSERT_THAT(FillInPlace(flags, 1), IsOk());
  ExpectTensor(flags, {2}, {1, 1});
  Tensor nothing = Tensor::Zeros({0, 3});
  EXPECT_THAT(FillInPlace(nothing, 1), IsOk());
}

TEST(InPlaceTest, FillsIntegersOnlyWithWhatTheyHold) {
  struct Case {
    DType dtype;
    std::vector<double> held, refused;
  };
  const double inf = std::numeric_limits<double>::infinity();
  const Case cases[] = {
      {DType::kI64, {-0x1p63, 0x1p62}, {0x1p63, -0x1.8p63, 0.5}},
      {DType::kI32, {-0x1p31, 0x1p31 - 1}, {0x1p31, -0x1p31 - 1, 1.5}},
      {DType::kU8, {0, 255}, {256, -1, 254.5}},
      {DType::kBool, {0, 1}, {2, -1, 0.5}}};
  for (const Case& c : cases) {
    Tensor a = Tensor::Zeros({2}, {c.dtype});
    for (const double value : c.held) {
      ASSERT_THAT(FillInPlace(a, value), IsOk()) << value;
      ExpectTensor(a, {2}, {value, value}, 1e-300);
    }
    const std::vector<double> before = Values(a);
    std::vector<double> refused = c.refused;
    refused.insert(refused.end(), {inf, -inf, std::nan("")});
    for (const double value : refused) {
      EXPECT_THAT(FillInPlace(a, value),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("does not hold")))
          << c.dtype << " " << value;
    }
    ExpectTensor(a, {2}, before, 1e-300);
  }
}

TEST(InPlaceTest, AddsIntegers) {
  Tensor a = FromValues({1, 2, 3}, {3}, DType::kI32);
  ASSERT_THAT(AddInPlace(a, FromValues({10, 20, 30}, {3}, DType::kI32), -2),
              IsOk());
  ExpectTensor(a, {3}, {-19, -38, -57});
}

TEST(InPlaceTest, CopyIntoConvertsAndBroadcasts) {
  Tensor dst = Tensor::Zeros({2, 3}, {DType::kBF16});
  const uint64_t version = dst.version();
  ASSERT_THAT(CopyInto(dst, FromValues({1, 2, 3}, {3}, DType::kI64)), IsOk());
  ExpectTensor(dst, {2, 3}, {1, 2, 3, 1, 2, 3});
  EXPECT_GT(dst.version(), version);
}

TEST(InPlaceTest, RefusesWhatDoesNotFit) {
  Tensor a = Tensor::Zeros({2, 3});
  const uint64_t version = a.version();
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(AddInPlace(a, TestTensor({2, 2, 3})),
              StatusIs(kBad, HasSubstr("AddInPlace")));
  EXPECT_THAT(MulInPlace(a, TestTensor({2})), StatusIs(kBad));
  EXPECT_THAT(AddInPlace(a, TestTensor({3}, DType::kF64)), StatusIs(kBad));
  EXPECT_THAT(CopyInto(a, TestTensor({4})), StatusIs(kBad));
  EXPECT_THAT(AddInPlace(a, Tensor()), StatusIs(kBad));
  EXPECT_EQ(a.version(), version);
  Tensor expanded = *TestTensor({1, 3}).Expand({2, 3});
  EXPECT_THAT(AddInPlace(expanded, a),
              StatusIs(kBad, HasSubstr("broadcast view")));
  EXPECT_THAT(FillInPlace(expanded, 0), StatusIs(kBad));
  Tensor whole = FromValues({1}, {1}, DType::kI64);
  EXPECT_THAT(MulScalarInPlace(whole, 0.5), StatusIs(kBad));
  EXPECT_THAT(AddInPlace(whole, whole, 0.5),
              StatusIs(kBad, HasSubstr("alpha 0.5")));
  Tensor undefined;
  EXPECT_THAT(FillInPlace(undefined, 0), StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
