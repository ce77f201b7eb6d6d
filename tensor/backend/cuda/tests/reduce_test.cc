#include "tensor/ops/reduce.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using CudaReduceTest = CudaTest;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  Shape shape;
  std::vector<int64_t> dims;
};

// Rows, columns, all elements, non-adjacent dims, and sizes that lead to each
// layout of threads and parts.
const std::vector<Case> kCases = {
    {{}, {}},
    {{1}, {0}},
    {{0}, {0}},
    {{3, 0}, {0}},
    {{3, 0}, {1}},
    {{7}, {}},
    {{3, 5}, {0}},
    {{3, 5}, {1}},
    {{3, 5}, {0, 1}},
    {{2, 3, 4}, {1}},
    {{2, 3, 4}, {0, 2}},
    {{2, 3, 4, 5}, {1, 2}},
    {{300, 2}, {1}},
    {{2, 300}, {1}},
    {{300, 33}, {0}},
    {{9000}, {}},
    {{9000, 3}, {0}},
    {{3, 9000}, {1}},
    {{40, 2, 300}, {0, 2}},
};

TEST_F(CudaReduceTest, SumMeanMaxMin) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    for (const auto& [shape, dims] : kCases) {
      const Tensor a =
          TestTensor(shape, dtype, 1, dtype == DType::kU8 ? 0 : -2, 2);
      SCOPED_TRACE(testing::Message() << a.ToString());
      for (const bool keepdim : {false, true}) {
        // The tolerance grows with the number of terms, since the CPU may add
        // them in f32.
        ExpectSame(
            {a},
            [&](const auto& in) { return Sum(in[0], DimSpan(dims), keepdim); },
            IsFloatingPoint(dtype) ? 8 * Tolerance(dtype) : 0);
        if (IsFloatingPoint(dtype)) {
          ExpectSame({a}, [&](const auto& in) {
            return Mean(in[0], DimSpan(dims), keepdim);
          });
        }
        const auto max = [&](const auto& in) {
          return Max(in[0], DimSpan(dims), keepdim);
        };
        const auto min = [&](const auto& in) {
          return Min(in[0], DimSpan(dims), keepdim);
        };
        if (!max(std::vector<Tensor>{a}).ok())
          continue;  // Reductions of
                     // nothing have no
                     // maximum.
        ExpectSame({a}, max);
        ExpectSame({a}, min);
      }
    }
  }
}

TEST_F(CudaReduceTest, SpecialValues) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = FromValues(
        {1, kNaN, 2, kInf, -kInf, 3, -kInf, -kInf, -kInf}, {3, 3}, dtype);
    for (const std::vector<int64_t>& dims :
         std::vector<std::vector<int64_t>>{{0}, {1}, {0, 1}}) {
      ExpectSame({a},
                 [&](const auto& in) { return Sum(in[0], DimSpan(dims)); });
      ExpectSame({a},
                 [&](const auto& in) { return Max(in[0], DimSpan(dims)); });
      ExpectSame({a},
                 [&](const auto& in) { return Min(in[0], DimSpan(dims)); });
    }
  }
}

TEST_F(CudaReduceTest, IntegerSumsWrap) {
  const Tensor a =
      Tensor::FromVector<int64_t>({INT64_MAX, 1, INT64_MIN, -1}, {2, 2});
  ExpectSame({a}, [](const auto& in) { return Sum(in[0], {1}); });
  ExpectSame({a}, [](const auto& in) { return Max(in[0], {0}); });
  ExpectSame({Tensor::Full({3, 100}, 200, {DType::kU8})},
             [](const auto& in) { return Sum(in[0], {1}); });
}

TEST_F(CudaReduceTest, ArgMax) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    for (const Shape& shape :
         std::vector<Shape>{{}, {1}, {9}, {4, 5}, {3, 4, 5}, {0, 3}}) {
      const Tensor a = TestTensor(shape, dtype, 1, 0, 4);
      for (int dim = 0; dim < std::max(shape.rank(), 1); ++dim) {
        if (shape.rank() > 0 && shape[dim] == 0) continue;
        ExpectSame({a}, [&](const auto& in) { return ArgMax(in[0], dim); });
      }
    }
  }
  const Tensor a = FromValues({1, kNaN, 3, kNaN, -kInf, -kInf, 2, 2}, {2, 4});
  ExpectSame({a}, [](const auto& in) { return ArgMax(in[0], 1); });
  ExpectSame({a}, [](const auto& in) { return ArgMax(in[0], 0); });
}

TEST_F(CudaReduceTest, Norms) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape :
         std::vector<Shape>{{}, {0}, {5}, {3, 7}, {50, 90}}) {
      const Tensor a = TestTensor(shape, dtype, 1, -1, 1);
      for (const double p : {1.0, 2.0, 3.0, 0.5, kInf}) {
        SCOPED_TRACE(testing::Message() << a.ToString() << " p = " << p);
        ExpectSame(
            {a}, [p](const auto& in) { return Norm(in[0], p); },
            8 * Tolerance(dtype));
      }
    }
  }
  const Tensor a = FromValues({1, kNaN, 3}, {3});
  ExpectSame({a}, [](const auto& in) { return Norm(in[0], kInf); });
}

TEST_F(CudaReduceTest, SumToUndoesBroadcasting) {
  const Tensor a = TestTensor({2, 3, 4});
  for (const Shape& shape :
       std::vector<Shape>{{4}, {3, 1}, {1, 4}, {}, {2, 1, 4}}) {
    ExpectSame({a}, [&](const auto& in) { return SumTo(in[0], shape); });
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
