#include "tensor/ops/reduce.h"

#include <algorithm>
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
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

struct ReduceCase {
  Shape shape;
  std::vector<int64_t> dims;
};

const ReduceCase kCases[] = {
    {{}, {}},
    {{7}, {0}},
    {{5000}, {}},
    {{3, 700}, {1}},
    {{700, 3}, {0}},
    {{1500, 70}, {0}},
    {{4, 5, 6}, {1}},
    {{4, 5, 6}, {0, 2}},
    {{4, 5, 6}, {-1, -2}},
    {{2, 3, 4, 5}, {0, 2, 3}},
    {{1, 6}, {0}},
    {{6, 1}, {1}},
    {{128, 10}, {0}},
};

Shape Kept(const ReduceCase& c) {
  Shape shape = c.shape;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool named = std::any_of(
        c.dims.begin(), c.dims.end(),
        [&](int64_t dim) { return dim == d || dim + shape.rank() == d; });
    if (named || c.dims.empty()) shape[d] = 1;
  }
  return shape;
}

template <class F>
std::vector<double> Folded(const Tensor& a, const Shape& kept, double start,
                           F f) {
  const std::vector<double> x = Values(a);
  std::vector<double> result(static_cast<size_t>(kept.num_elements()), start);
  ForEachIndex(a.shape(), [&](const std::vector<int64_t>& index) {
    double& acc = result[PositionOf(index, kept)];
    acc = f(acc, x[PositionOf(index, a.shape())]);
  });
  return result;
}

TEST(ReduceTest, MatchesLoopsOverDoubles) {
  for (const ReduceCase& c : kCases) {
    const Shape kept = Kept(c);
    for (const DType dtype : kFloatDTypes) {
      const Tensor a = TestTensor(c.shape, dtype, 4);
      auto means = Folded(a, kept, 0, [](double s, double x) { return s + x; });
      const double count = static_cast<double>(a.num_elements()) /
                           static_cast<double>(kept.num_elements());
      const auto sums = means;
      for (double& mean : means) mean /= count;
      const auto maxima = Folded(
          a, kept, -kInf, [](double s, double x) { return std::max(s, x); });
      const auto minima = Folded(
          a, kept, kInf, [](double s, double x) { return std::min(s, x); });
      for (const Tensor& x : Layouts(a)) {
        SCOPED_TRACE(x.ToString() + " to " + kept.ToString());
        ExpectTensor(*Sum(x, c.dims, true), kept, sums,
                     Tolerance(dtype) * std::sqrt(count));
        ExpectTensor(*Mean(x, c.dims, true), kept, means);
        ExpectTensor(*Max(x, c.dims, true), kept, maxima);
        ExpectTensor(*Min(x, c.dims, true), kept, minima);
      }
    }
  }
}

TEST(ReduceTest, LeavesReducedDimsOut) {
  const Tensor a = TestTensor({2, 3, 4});
  EXPECT_EQ(Sum(a)->shape(), Shape());
  EXPECT_EQ(Sum(a, {1})->shape(), Shape({2, 4}));
  EXPECT_EQ(Sum(a, {0, -1})->shape(), Shape({3}));
  EXPECT_EQ(Sum(a, {1}, true)->shape(), Shape({2, 1, 4}));
}

TEST(ReduceTest, SumsOfManyFloatsStayExact) {
  // In plain f32 the sum would stop growing at 2^24.
  const Tensor a = Tensor::Ones({1 << 24, 2});
  ExpectTensor(*Sum(a), {}, {33554432.0}, 1e-7);
  ExpectTensor(*Sum(a, {0}), {2}, {16777216.0, 16777216.0}, 1e-7);
}

TEST(ReduceTest, Integers) {
  const Tensor a = FromValues({1, -2, 3, 4, 5, -6}, {2, 3}, DType::kI32);
  ExpectTensor(*Sum(a, {0}), {3}, {5, 3, -3});
  ExpectTensor(*Max(a, {1}), {2}, {3, 5});
  ExpectTensor(*Min(a), {}, {-6});
  EXPECT_THAT(Mean(a), StatusIs(absl::StatusCode::kInvalidArgument));
  const Tensor large =
      Tensor::FromVector<int64_t>({(int64_t{1} << 62) + 1, 3}, {2});
  EXPECT_EQ(Sum(large)->ToVector<int64_t>()[0], (int64_t{1} << 62) + 4);
}

TEST(ReduceTest, NothingToReduce) {
  ExpectTensor(*Sum(Tensor::Zeros({0, 3}), {0}), {3}, {0, 0, 0});
  ExpectTensor(*Sum(Tensor::Zeros({0})), {}, {0});
  ExpectTensor(*Mean(Tensor::Zeros({0})), {}, {kNaN});
  EXPECT_THAT(Max(Tensor::Zeros({0})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(Max(Tensor::Zeros({0, 3}), {1})->shape(), Shape({0}));
  EXPECT_THAT(ArgMax(Tensor::Zeros({0, 3}), 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReduceTest, MaxAndMinKeepNaN) {
  for (const DType dtype : kFloatDTypes) {
    std::vector<double> values(300, 1.0);
    for (const size_t at : {size_t{0}, size_t{150}, size_t{299}}) {
      values[at] = kNaN;
      const Tensor a = FromValues(values, {300}, dtype);
      ExpectTensor(*Max(a), {}, {kNaN});
      ExpectTensor(*Min(a), {}, {kNaN});
      values[at] = 1.0;
    }
    const Tensor rows = FromValues({1, kNaN, 2, 3}, {2, 2}, dtype);
    ExpectTensor(*Max(rows, {0}), {2}, {2, kNaN});
  }
}

TEST(ReduceTest, ArgMaxIsTheFirstOfEqualsAndTheFirstNaN) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
                            DType::kI64, DType::kU8}) {
    const Tensor a = FromValues({1, 5, 5, 9, 2, 9}, {2, 3}, dtype);
    for (const Tensor& x : Layouts(a)) {
      ExpectTensor(*ArgMax(x, 1), {2}, {1, 0});
      ExpectTensor(*ArgMax(x, 0, true), {1, 3}, {1, 0, 1});
    }
  }
  ExpectTensor(*ArgMax(FromValues({1, kNaN, 3, kNaN}, {4}), 0), {}, {1});
  ExpectTensor(*ArgMax(FromValues({-kInf, -kInf}, {2}), -1), {}, {0});
  std::vector<double> longer(2000, 0.0);
  longer[1700] = 1;
  ExpectTensor(*ArgMax(FromValues(longer, {2000}), 0), {}, {1700});
  ExpectTensor(*ArgMax(Tensor::Scalar(4), -1), {}, {0});
}

TEST(ReduceTest, SumToUndoesBroadcasting) {
  const Tensor a = TestTensor({2, 3, 4}, DType::kF64);
  for (const Shape& shape :
       {Shape{2, 3, 4}, Shape{3, 4}, Shape{4}, Shape{}, Shape{3, 1},
        Shape{2, 1, 1}, Shape{1, 1, 1}, Shape{1, 3, 4}}) {
    ExpectTensor(*SumTo(a, shape), shape,
                 Folded(a, shape, 0, [](double s, double x) { return s + x; }));
  }
  EXPECT_TRUE(SumTo(a, {2, 3, 4})->is_same(a));
  EXPECT_THAT(SumTo(a, {5}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SumTo")));
  EXPECT_THAT(SumTo(a, {1, 2, 3, 4}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReduceTest, Norms) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = FromValues({3, -4, 0, 12}, {2, 2}, dtype);
    for (const Tensor& x : Layouts(a)) {
      ExpectTensor(*Norm(x), {}, {13});
      ExpectTensor(*Norm(x, 1), {}, {19});
      ExpectTensor(*Norm(x, kInf), {}, {12});
      ExpectTensor(*Norm(x, 3), {}, {std::cbrt(27 + 64 + 1728)});
    }
    ExpectTensor(*Norm(FromValues({1, kNaN}, {2}, dtype), kInf), {}, {kNaN});
    ExpectTensor(*Norm(Tensor::Zeros({0}, {dtype})), {}, {0});
  }
  EXPECT_THAT(Norm(TestTensor({2}), 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReduceTest, ErrorsNameWhatDoesNotFit) {
  const Tensor a = TestTensor({2, 3});
  EXPECT_THAT(Sum(a, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("dim 2"), HasSubstr("f32[2, 3]"))));
  EXPECT_THAT(Sum(a, {0, -2}), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("named twice")));
  EXPECT_THAT(Sum(Tensor()), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Sum(Tensor::Zeros({2}, {DType::kBool})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ArgMax(a, 5), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::tensor
