#include "tensor/ops/elementwise.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/in_place.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using async::IsOk;

using CudaElementwiseTest = CudaTest;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

using UnaryFunction = absl::StatusOr<Tensor> (*)(const Tensor&);
using BinaryFunction = absl::StatusOr<Tensor> (*)(const Tensor&, const Tensor&);

const std::vector<Shape> kShapes = {{}, {0}, {1}, {5}, {3, 7}, {2, 1, 4, 3}};

// Pairs that broadcast.
const std::vector<std::pair<Shape, Shape>> kPairs = {
    {{}, {}},         {{5}, {5}},          {{3, 4}, {4}},
    {{3, 1}, {1, 4}}, {{2, 3, 4}, {3, 1}}, {{}, {2, 3}},
    {{0, 4}, {1, 4}}, {{1}, {1}},
};

void ExpectSameUnary(UnaryFunction function, const Tensor& a) {
  ExpectSame({a}, [&](const auto& in) { return function(in[0]); });
}

void ExpectSameBinary(BinaryFunction function, const Tensor& a,
                      const Tensor& b) {
  ExpectSame({a, b}, [&](const auto& in) { return function(in[0], in[1]); });
}

TEST_F(CudaElementwiseTest, UnaryOfFloats) {
  const std::vector<UnaryFunction> functions = {
      Neg, Exp,        Log,    Sqrt, Rsqrt,   Abs,  Sign, Sin,
      Cos, Reciprocal, Square, Relu, Sigmoid, Tanh, Gelu, Silu};
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor mixed = TestTensor(shape, dtype, 1, -3, 3);
      const Tensor positive = TestTensor(shape, dtype, 2, 0.5, 3);
      for (size_t i = 0; i < functions.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "function " << i << " " << mixed);
        ExpectSameUnary(functions[i], positive);
        const bool sharp =
            functions[i] == static_cast<UnaryFunction>(Log) ||
            functions[i] == static_cast<UnaryFunction>(Rsqrt) ||
            functions[i] == static_cast<UnaryFunction>(Reciprocal);
        if (!sharp) ExpectSameUnary(functions[i], mixed);
      }
    }
  }
}

TEST_F(CudaElementwiseTest, UnaryOfSpecialFloats) {
  const std::vector<UnaryFunction> functions = {
      Neg, Exp, Log,        Sqrt,   Rsqrt, Abs,     Sign,
      Sin, Cos, Reciprocal, Square, Relu,  Sigmoid, Tanh};
  for (const DType dtype : kFloatDTypes) {
    const Tensor a =
        FromValues({0, -0.0, kInf, -kInf, kNaN, 1, -1, 80}, {8}, dtype);
    for (size_t i = 0; i < functions.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "function " << i << " " << dtype);
      ExpectSameUnary(functions[i], a);
    }
  }
}

TEST_F(CudaElementwiseTest, UnaryOfIntegers) {
  for (const DType dtype : kIntegerDTypes) {
    const double low = dtype == DType::kU8 ? 0 : -100;
    for (const Shape& shape : kShapes) {
      const Tensor a = TestTensor(shape, dtype, 1, low, 100);
      for (const UnaryFunction function : {Neg, Abs, Sign, Square, Relu}) {
        ExpectSameUnary(function, a);
      }
    }
  }
}

TEST_F(CudaElementwiseTest, BinaryOfFloats) {
  for (const DType dtype : kFloatDTypes) {
    for (const auto& [left, right] : kPairs) {
      const Tensor a = TestTensor(left, dtype, 1, 0.5, 2);
      const Tensor b = TestTensor(right, dtype, 2, 0.5, 2);
      for (const BinaryFunction function :
           {Add, Sub, Mul, Div, Maximum, Minimum, Pow}) {
        ExpectSameBinary(function, a, b);
      }
    }
  }
}

TEST_F(CudaElementwiseTest, BinaryOfIntegers) {
  for (const DType dtype : kIntegerDTypes) {
    const double low = dtype == DType::kU8 ? 0 : -100;
    for (const auto& [left, right] : kPairs) {
      const Tensor a = TestTensor(left, dtype, 1, low, 100);
      const Tensor b = TestTensor(right, dtype, 2, low, 100);
      for (const BinaryFunction function : {Add, Sub, Mul, Maximum, Minimum}) {
        ExpectSameBinary(function, a, b);
      }
    }
  }
}

TEST_F(CudaElementwiseTest, MaximumAndMinimumKeepNaN) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = FromValues({kNaN, 1, kNaN, -kInf, 2}, {5}, dtype);
    const Tensor b = FromValues({1, kNaN, kNaN, kInf, 2}, {5}, dtype);
    ExpectSameBinary(Maximum, a, b);
    ExpectSameBinary(Minimum, a, b);
  }
}

TEST_F(CudaElementwiseTest, Comparisons) {
  for (const DType dtype : kAllDTypes) {
    const double high = dtype == DType::kBool ? 1 : 3;
    for (const auto& [left, right] : kPairs) {
      const Tensor a = TestTensor(left, dtype, 1, 0, high);
      const Tensor b = TestTensor(right, dtype, 2, 0, high);
      ExpectSameBinary(Eq, a, b);
      ExpectSameBinary(Ne, a, b);
      if (dtype == DType::kBool) continue;
      for (const BinaryFunction function : {Lt, Le, Gt, Ge}) {
        ExpectSameBinary(function, a, b);
      }
    }
  }
  const Tensor a = FromValues({kNaN, kNaN, 0, kInf}, {4});
  const Tensor b = FromValues({kNaN, 1, -0.0, kInf}, {4});
  for (const BinaryFunction function : {Eq, Ne, Lt, Le, Gt, Ge}) {
    ExpectSameBinary(function, a, b);
  }
}

TEST_F(CudaElementwiseTest, WhereOfEveryDType) {
  for (const DType dtype : kAllDTypes) {
    for (const auto& [left, right] : kPairs) {
      const Tensor a = TestTensor(left, dtype, 1, 0, 1);
      const Tensor b = TestTensor(right, dtype, 2, 0, 1);
      const Tensor condition = TestTensor(left, DType::kBool, 3, 0, 1);
      ExpectSame({condition, a, b},
                 [](const auto& in) { return Where(in[0], in[1], in[2]); });
    }
  }
}

TEST_F(CudaElementwiseTest, Scalars) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = TestTensor({3, 5}, dtype, 1, 0.5, 2);
    for (const double b : {2.0, -1.0, 0.5, 3.0}) {
      ExpectSame({a}, [b](const auto& in) { return AddScalar(in[0], b); });
      ExpectSame({a}, [b](const auto& in) { return MulScalar(in[0], b); });
      ExpectSame({a}, [b](const auto& in) { return PowScalar(in[0], b); });
    }
  }
  for (const DType dtype : kIntegerDTypes) {
    const Tensor a = TestTensor({3, 5}, dtype, 1, 0, 100);
    ExpectSame({a}, [](const auto& in) { return AddScalar(in[0], 200); });
    ExpectSame({a}, [](const auto& in) { return MulScalar(in[0], 3); });
  }
}

TEST_F(CudaElementwiseTest, GradientsOfActivations) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor saved = TestTensor(shape, dtype, 1, -0.9, 0.9);
      const Tensor dout = TestTensor(shape, dtype, 2, -2, 2);
      for (const BinaryFunction function :
           {ReluGrad, SigmoidGrad, TanhGrad, GeluGrad, SiluGrad}) {
        ExpectSameBinary(function, saved, dout);
      }
    }
    ExpectSameBinary(ReluGrad, FromValues({kNaN, 0, -0.0, 1}, {4}, dtype),
                     FromValues({5, 6, 7, 8}, {4}, dtype));
  }
}

// Applies `change` to a copy of in[0] with the same memory layout.
absl::StatusOr<Tensor> InPlace(
    const std::vector<Tensor>& in,
    const std::function<absl::Status(Tensor&)>& change) {
  Tensor a = in[0];
  const uint64_t version = a.version();
  if (absl::Status status = change(a); !status.ok()) return status;
  EXPECT_GT(a.version(), version);
  return a;
}

TEST_F(CudaElementwiseTest, InPlaceOperations) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    for (const auto& [left, right] : std::vector<std::pair<Shape, Shape>>{
             {{3, 4}, {3, 4}}, {{3, 4}, {4}}, {{2, 3}, {}}, {{0}, {0}}}) {
      const Tensor b = TestTensor(right, dtype, 2, 0, 5);
      const auto expect_same = [&](const auto& change) {
        // Created for each case, since it is changed in place.
        const Tensor a = TestTensor(left, dtype, 1, 0, 5);
        ExpectSame({a, b}, [&](const std::vector<Tensor>& in) {
          const Tensor copy = in[0].device().is_cpu() ? *in[0].Clone() : in[0];
          return InPlace({copy}, [&](Tensor& t) { return change(t, in[1]); });
        });
      };
      expect_same([](Tensor& t, const Tensor& other) {
        return AddInPlace(t, other, 3);
      });
      expect_same(
          [](Tensor& t, const Tensor& other) { return MulInPlace(t, other); });
      expect_same(
          [](Tensor& t, const Tensor& other) { return CopyInto(t, other); });
      expect_same([](Tensor& t, const Tensor&) { return FillInPlace(t, 7); });
      expect_same([](Tensor& t, const Tensor&) { return FillInPlace(t, 0); });
      if (!IsFloatingPoint(dtype)) continue;
      expect_same([](Tensor& t, const Tensor& other) {
        return AddInPlace(t, other, -0.25);
      });
      expect_same(
          [](Tensor& t, const Tensor&) { return MulScalarInPlace(t, 0.5); });
    }
  }
}

TEST_F(CudaElementwiseTest, FillOfBool) {
  for (const double value : {0.0, 0.5, 1.0}) {
    Tensor t = *Tensor::Zeros({3}, {DType::kBool}).To(Cuda());
    EXPECT_THAT(FillInPlace(t, value), IsOk());
    EXPECT_EQ(t.ToVector<bool>(), std::vector<bool>(3, value != 0));
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
