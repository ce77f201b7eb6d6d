#include "tensor/ops/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
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

using UnaryFn = absl::StatusOr<Tensor> (*)(const Tensor&);
using BinaryFn = absl::StatusOr<Tensor> (*)(const Tensor&, const Tensor&);

struct UnaryCase {
  const char* name;
  UnaryFn function;
  double (*reference)(double);
  bool positive = false;
  bool integers = false;
};

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double GeluOf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double SiluOf(double x) { return x * SigmoidOf(x); }

const UnaryCase kUnaryCases[] = {
    {"Neg", Neg, [](double x) { return -x; }, false, true},
    {"Exp", Exp, [](double x) { return std::exp(x); }},
    {"Log", Log, [](double x) { return std::log(x); }, true},
    {"Sqrt", Sqrt, [](double x) { return std::sqrt(x); }, true},
    {"Rsqrt", Rsqrt, [](double x) { return 1 / std::sqrt(x); }, true},
    {"Abs", Abs, [](double x) { return std::fabs(x); }, false, true},
    {"Sign", Sign, [](double x) { return x > 0   ? 1.
                                         : x < 0 ? -1.
                                                 : x; }, false,
     true},
    {"Sin", Sin, [](double x) { return std::sin(x); }},
    {"Cos", Cos, [](double x) { return std::cos(x); }},
    {"Reciprocal", Reciprocal, [](double x) { return 1 / x; }, true},
    {"Square", Square, [](double x) { return x * x; }, false, true},
    {"Relu", Relu, [](double x) { return x < 0 ? 0 : x; }, false, true},
    {"Sigmoid", Sigmoid, SigmoidOf},
    {"Tanh", Tanh, [](double x) { return std::tanh(x); }},
    {"Gelu", Gelu, GeluOf},
    {"Silu", Silu, SiluOf},
};

const Shape kShapes[] = {{},     {0},       {1},        {7},
                         {1023}, {3, 0, 2}, {5, 1, 33}, {2, 3, 4, 5}};

std::vector<double> Mapped(const Tensor& a, double (*f)(double)) {
  std::vector<double> values = Values(a);
  for (double& value : values) value = f(value);
  return values;
}

TEST(ElementwiseTest, UnaryFunctionsMatchDoubleArithmetic) {
  for (const UnaryCase& c : kUnaryCases) {
    for (const DType dtype : kFloatDTypes) {
      for (const Shape& shape : kShapes) {
        const Tensor a = TestTensor(shape, dtype, 3, c.positive ? 0.25 : -4, 4);
        for (const Tensor& layout : Layouts(a)) {
          SCOPED_TRACE(std::string(c.name) + " " + layout.ToString());
          const absl::StatusOr<Tensor> result = c.function(layout);
          ASSERT_THAT(result, IsOk());
          EXPECT_EQ(result->dtype(), dtype);
          EXPECT_TRUE(result->is_contiguous());
          ExpectTensor(*result, shape, Mapped(a, c.reference));
        }
      }
    }
  }
}

TEST(ElementwiseTest, UnaryFunctionsOfIntegers) {
  for (const UnaryCase& c : kUnaryCases) {
    for (const DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
      SCOPED_TRACE(c.name);
      const double low = dtype == DType::kU8 ? 0 : -9;
      const Tensor a = TestTensor({4, 5}, dtype, 3, low, 9);
      const absl::StatusOr<Tensor> result = c.function(a);
      if (!c.integers) {
        EXPECT_THAT(result, StatusIs(absl::StatusCode::kInvalidArgument,
                                     AllOf(HasSubstr(c.name),
                                           HasSubstr(a.ToString()))));
        continue;
      }
      ASSERT_THAT(result, IsOk());
      if (dtype == DType::kU8 && c.function == &Neg) continue;  // wraps
      ExpectTensor(*result, a.shape(), Mapped(a, c.reference));
    }
  }
}

TEST(ElementwiseTest, SpecialValuesAreThoseOfTheMathLibrary) {
  const std::vector<double> specials = {kNaN, kInf, -kInf, 0.0,  -0.0,  100,
                                        -100, 88.7, 89,    -104, 1e-40, 3e38};
  for (const UnaryCase& c : kUnaryCases) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      SCOPED_TRACE(std::string(c.name) + (dtype == DType::kF32 ? " f32" : ""));
      const Tensor a = FromValues(specials, {12}, dtype);
      std::vector<double> expected;
      for (const double x : Values(a)) {
        const double y = c.reference(x);
        expected.push_back(dtype == DType::kF32
                               ? static_cast<double>(static_cast<float>(y))
                               : y);
      }
      const absl::StatusOr<Tensor> result = c.function(a);
      ASSERT_THAT(result, IsOk());
      ExpectTensor(*result, a.shape(), expected);
    }
  }
}

struct BinaryCase {
  const char* name;
  BinaryFn function;
  double (*reference)(double, double);
  bool integers = false;
};

double MaxOf(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? kNaN : std::fmax(x, y);
}
double MinOf(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? kNaN : std::fmin(x, y);
}

const BinaryCase kBinaryCases[] = {
    {"Add", Add, [](double x, double y) { return x + y; }, true},
    {"Sub", Sub, [](double x, double y) { return x - y; }, true},
    {"AddScaled",
     [](const Tensor& a, const Tensor& b) { return AddScaled(a, b, -0.25); },
     [](double x, double y) { return x - 0.25 * y; }},
    {"Mul", Mul, [](double x, double y) { return x * y; }, true},
    {"Div", Div, [](double x, double y) { return x / y; }},
    {"Maximum", Maximum, MaxOf, true},
    {"Minimum", Minimum, MinOf, true},
    {"Pow", Pow, [](double x, double y) { return std::pow(x, y); }},
};

std::vector<double> Mapped2(const Tensor& a, const Tensor& b,
                            const Shape& shape, double (*f)(double, double)) {
  const std::vector<double> x = Values(a), y = Values(b);
  std::vector<double> result;
  ForEachIndex(shape, [&](const std::vector<int64_t>& index) {
    result.push_back(
        f(x[PositionOf(index, a.shape())], y[PositionOf(index, b.shape())]));
  });
  return result;
}

struct Broadcast {
  Shape a, b, result;
};

const Broadcast kBroadcasts[] = {
    {{}, {}, {}},
    {{5}, {}, {5}},
    {{1025}, {1025}, {1025}},
    {{3, 1}, {1, 600}, {3, 600}},
    {{2, 3, 4}, {3, 1}, {2, 3, 4}},
    {{4}, {2, 3, 4}, {2, 3, 4}},
    {{0, 3}, {1, 3}, {0, 3}},
    {{3, 0}, {3, 1}, {3, 0}},
};

TEST(ElementwiseTest, BinaryFunctionsBroadcast) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const DType dtype : kFloatDTypes) {
      for (const Broadcast& shapes : kBroadcasts) {
        const Tensor a = TestTensor(shapes.a, dtype, 1, 0.5, 3);
        const Tensor b = TestTensor(shapes.b, dtype, 2, 0.5, 2);
        for (const Tensor& x : Layouts(a)) {
          for (const Tensor& y : Layouts(b)) {
            SCOPED_TRACE(c.name);
            const absl::StatusOr<Tensor> result = c.function(x, y);
            ASSERT_THAT(result, IsOk());
            ExpectTensor(*result, shapes.result,
                         Mapped2(a, b, shapes.result, c.reference));
          }
        }
      }
    }
  }
}

TEST(ElementwiseTest, AddScaledRoundsOnce) {
  // 1 + 2^-13 + 2^-26, which f32 does not hold, less what it holds of it.
  const double value = 1 + 0x1p-13;
  const Tensor square = FromValues({-(1 + 0x1p-12)}, {1});
  const absl::StatusOr<Tensor> rest =
      AddScaled(square, FromValues({value}, {1}), value);
  ASSERT_THAT(rest, IsOk());
  EXPECT_EQ(Values(*rest)[0], 0x1p-26);
}

TEST(ElementwiseTest, AddScaledOfLongRunsLeavesItsOperands) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = TestTensor({1037}, dtype, 1);
    const Tensor b = TestTensor({1037}, dtype, 2);
    const std::vector<double> before = Values(a);
    const absl::StatusOr<Tensor> sum = AddScaled(a, b, 1);
    ASSERT_THAT(sum, IsOk());
    ExpectTensor(*sum, {1037}, Mapped2(a, b, {1037}, [](double x, double y) {
      return x + y;
    }));
    EXPECT_EQ(Values(a), before);
  }
}

TEST(ElementwiseTest, BinaryFunctionsOfIntegers) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
      SCOPED_TRACE(c.name);
      const Tensor a = TestTensor({3, 5}, dtype, 1, 5, 11);
      const Tensor b = TestTensor({5}, dtype, 2, 0, 5);
      const absl::StatusOr<Tensor> result = c.function(a, b);
      if (!c.integers) {
        EXPECT_THAT(result, StatusIs(absl::StatusCode::kInvalidArgument));
        continue;
      }
      ASSERT_THAT(result, IsOk());
      EXPECT_EQ(result->dtype(), dtype);
      ExpectTensor(*result, a.shape(), Mapped2(a, b, a.shape(), c.reference));
    }
  }
}

TEST(ElementwiseTest, IntegersWrapAround) {
  const Tensor bytes = FromValues({250, 3}, {2}, DType::kU8);
  ExpectTensor(*Add(bytes, bytes), {2}, {244, 6});
  ExpectTensor(*Neg(bytes), {2}, {6, 253});
  const int64_t least = std::numeric_limits<int64_t>::min();
  const Tensor extreme = Tensor::FromVector<int64_t>({least}, {1});
  EXPECT_EQ(Neg(extreme)->ToVector<int64_t>()[0], least);
  EXPECT_EQ(Add(extreme, extreme)->ToVector<int64_t>()[0], 0);
}

TEST(ElementwiseTest, MaximumAndMinimumKeepNaN) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = FromValues({kNaN, 1, kNaN, 2}, {4}, dtype);
    const Tensor b = FromValues({1, kNaN, kNaN, 3}, {4}, dtype);
    ExpectTensor(*Maximum(a, b), {4}, {kNaN, kNaN, kNaN, 3});
    ExpectTensor(*Minimum(a, b), {4}, {kNaN, kNaN, kNaN, 2});
  }
}

TEST(ElementwiseTest, Scalars) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = TestTensor({3, 5}, dtype, 1, 0.5, 3);
    for (const Tensor& x : Layouts(a)) {
      ExpectTensor(*AddScalar(x, 1.5), a.shape(),
                   Mapped(a, [](double v) { return v + 1.5; }));
      ExpectTensor(*MulScalar(x, -2), a.shape(),
                   Mapped(a, [](double v) { return v * -2; }));
      ExpectTensor(*PowScalar(x, 1.5), a.shape(),
                   Mapped(a, [](double v) { return std::pow(v, 1.5); }));
      ExpectTensor(*PowScalar(x, 2), a.shape(),
                   Mapped(a, [](double v) { return v * v; }));
      ExpectTensor(*PowScalar(x, 1), a.shape(), Values(a));
      ExpectTensor(*PowScalar(x, -1), a.shape(),
                   Mapped(a, [](double v) { return 1 / v; }));
    }
  }
  const Tensor bytes = FromValues({1, 2}, {2}, DType::kU8);
  ExpectTensor(*AddScalar(bytes, 255), {2}, {0, 1});
  for (const double bad : {0.5, -1.0, 256.0, kNaN}) {
    EXPECT_THAT(AddScalar(bytes, bad),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("no element of the dtype")));
  }
  const Tensor longs = FromValues({1}, {1}, DType::kI64);
  EXPECT_THAT(MulScalar(longs, 0x1p63),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ElementwiseTest, Comparisons) {
  struct CompareCase {
    BinaryFn function;
    double (*reference)(double, double);
  };
  const CompareCase cases[] = {
      {Eq, [](double x, double y) { return x == y ? 1. : 0.; }},
      {Ne, [](double x, double y) { return x != y ? 1. : 0.; }},
      {Lt, [](double x, double y) { return x < y ? 1. : 0.; }},
      {Le, [](double x, double y) { return x <= y ? 1. : 0.; }},
      {Gt, [](double x, double y) { return x > y ? 1. : 0.; }},
      {Ge, [](double x, double y) { return x >= y ? 1. : 0.; }},
  };
  for (const CompareCase& c : cases) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16,
                              DType::kBF16, DType::kI64, DType::kU8}) {
      const Tensor a = FromValues({0, 1, 2, 3, 3, 3}, {2, 3}, dtype);
      const Tensor b = FromValues({1, 1, 3}, {3}, dtype);
      for (const Tensor& x : Layouts(a)) {
        const absl::StatusOr<Tensor> result = c.function(x, b);
        ASSERT_THAT(result, IsOk());
        EXPECT_EQ(result->dtype(), DType::kBool);
        ExpectTensor(*result, a.shape(), Mapped2(a, b, a.shape(), c.reference));
      }
    }
    const Tensor nan = FromValues({kNaN}, {1});
    ExpectTensor(*c.function(nan, nan), {1}, {c.reference(kNaN, kNaN)});
  }
  const Tensor flags = FromValues({0, 1}, {2}, DType::kBool);
  ExpectTensor(*Eq(flags, flags), {2}, {1, 1});
  EXPECT_THAT(Lt(flags, flags), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ElementwiseTest, WhereBroadcastsAllThree) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI32}) {
    const Tensor condition = FromValues({1, 0}, {2, 1}, DType::kBool);
    const Tensor a = FromValues({1, 2, 3}, {3}, dtype);
    const Tensor b = FromValues({-1}, {}, dtype);
    for (const Tensor& flags : Layouts(condition)) {
      ExpectTensor(*Where(flags, a, b), {2, 3}, {1, 2, 3, -1, -1, -1});
    }
  }
  const Tensor number = FromValues({1}, {});
  EXPECT_THAT(Where(number, number, number),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ElementwiseTest, GradientsAreSlopes) {
  struct GradCase {
    const char* name;
    UnaryFn function;
    BinaryFn gradient;
    bool from_output;
  };
  const GradCase cases[] = {{"Relu", Relu, ReluGrad, true},
                            {"Sigmoid", Sigmoid, SigmoidGrad, true},
                            {"Tanh", Tanh, TanhGrad, true},
                            {"Gelu", Gelu, GeluGrad, false},
                            {"Silu", Silu, SiluGrad, false}};
  constexpr double kStep = 1e-6;
  for (const GradCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Tensor x = TestTensor({4, 37}, DType::kF64, 5, -3, 3);
    const Tensor dout = TestTensor({4, 37}, DType::kF64, 6);
    const auto above = Values(*c.function(*AddScalar(x, kStep)));
    const auto below = Values(*c.function(*AddScalar(x, -kStep)));
    const auto weights = Values(dout);
    std::vector<double> expected;
    for (size_t i = 0; i < above.size(); ++i) {
      expected.push_back(weights[i] * (above[i] - below[i]) / (2 * kStep));
    }
    const Tensor saved = c.from_output ? *c.function(x) : x;
    ExpectTensor(*c.gradient(saved, dout), x.shape(), expected, 1e-7);
    for (const DType dtype : kFloatDTypes) {
      ExpectTensor(*c.gradient(*saved.To(dtype), *dout.To(dtype)), x.shape(),
                   expected, std::max(1e-5, 4 * Tolerance(dtype)));
    }
    EXPECT_THAT(c.gradient(saved, TestTensor({37}, DType::kF64)),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ElementwiseTest, ReluGradPassesNaNOn) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor out = FromValues({kNaN, 0, 1, -0.0}, {4}, dtype);
    ExpectTensor(*ReluGrad(out, FromValues({5, 6, 7, 8}, {4}, dtype)), {4},
                 {5, 0, 7, 0});
  }
}

TEST(ElementwiseTest, ErrorsNameOperationAndOperands) {
  const Tensor a = TestTensor({2, 3});
  EXPECT_THAT(Add(a, TestTensor({4})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("Add"), HasSubstr("f32[2, 3]"),
                             HasSubstr("f32[4]"))));
  EXPECT_THAT(Mul(a, TestTensor({2, 3}, DType::kF64)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("dtypes differ"), HasSubstr("f64"))));
  EXPECT_THAT(Sub(a, Tensor()), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("b is undefined")));
  EXPECT_THAT(Exp(Tensor()), StatusIs(absl::StatusCode::kInvalidArgument));
  const Tensor flags = FromValues({0, 1}, {2}, DType::kBool);
  EXPECT_THAT(Add(flags, flags), StatusIs(absl::StatusCode::kInvalidArgument));
  const Tensor whole = FromValues({0, 1}, {2}, DType::kI32);
  EXPECT_THAT(AddScaled(whole, whole, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("AddScaled"), HasSubstr("i32"))));
}

}  // namespace
}  // namespace hawser::tensor
