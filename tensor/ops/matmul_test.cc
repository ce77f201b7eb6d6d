#include "tensor/ops/matmul.h"

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/compute_threads.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The product of matrices of one rank >= 2, whose batch dims broadcast.
std::vector<double> Product(const Tensor& a, const Tensor& b,
                            const Shape& out) {
  const std::vector<double> x = Values(a), y = Values(b);
  const int64_t m = a.dim(-2), k = a.dim(-1), n = b.dim(-1);
  const auto batch = [](const Shape& shape) {
    return Shape(shape.span().first(shape.rank() - 2));
  };
  std::vector<double> result;
  ForEachIndex(batch(out), [&](const std::vector<int64_t>& index) {
    const int64_t left = PositionOf(index, batch(a.shape())) * m * k;
    const int64_t right = PositionOf(index, batch(b.shape())) * k * n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += x[left + i * k + p] * y[right + p * n + j];
        }
        result.push_back(sum);
      }
    }
  });
  return result;
}

double ProductTolerance(DType dtype, int64_t k) {
  return Tolerance(dtype) * std::sqrt(static_cast<double>(k) + 1) * 2;
}

struct Sizes {
  int64_t m, k, n;
};

const Sizes kSizes[] = {{1, 1, 1},    {1, 7, 1},    {3, 1, 5},   {5, 4, 3},
                        {64, 32, 10}, {33, 65, 17}, {0, 3, 2},   {2, 0, 3},
                        {2, 3, 0},    {1, 100, 64}, {64, 100, 1}};

TEST(MatMulTest, MatricesOfEveryLayoutAndDType) {
  for (const DType dtype : kFloatDTypes) {
    for (const Sizes& s : kSizes) {
      const Tensor a = TestTensor({s.m, s.k}, dtype, 1);
      const Tensor b = TestTensor({s.k, s.n}, dtype, 2);
      const auto expected = Product(a, b, {s.m, s.n});
      for (const Tensor& x : Layouts(a)) {
        for (const Tensor& y : Layouts(b)) {
          SCOPED_TRACE(x.ToString() + " " + y.ToString());
          const absl::StatusOr<Tensor> result = MatMul(x, y);
          ASSERT_THAT(result, IsOk());
          EXPECT_EQ(result->dtype(), dtype);
          ExpectTensor(*result, {s.m, s.n}, expected,
                       ProductTolerance(dtype, s.k));
        }
      }
    }
  }
}

TEST(MatMulTest, BatchesBroadcast) {
  struct Batch {
    Shape a, b, out;
  };
  const Batch batches[] = {
      {{4, 3, 5}, {4, 5, 2}, {4, 3, 2}},
      {{4, 3, 5}, {1, 5, 2}, {4, 3, 2}},
      {{1, 3, 5}, {4, 5, 2}, {4, 3, 2}},
      {{2, 1, 3, 5}, {1, 6, 5, 2}, {2, 6, 3, 2}},
      {{2, 2, 1, 2, 3, 5}, {1, 2, 2, 1, 5, 2}, {2, 2, 2, 2, 3, 2}},
      {{2, 1, 2, 1, 2, 3, 5}, {1, 2, 1, 2, 1, 5, 2}, {2, 2, 2, 2, 2, 3, 2}},
      {{0, 3, 5}, {0, 5, 2}, {0, 3, 2}},
  };
  for (const DType dtype : kFloatDTypes) {
    for (const Batch& batch : batches) {
      const Tensor a = TestTensor(batch.a, dtype, 1);
      const Tensor b = TestTensor(batch.b, dtype, 2);
      const auto expected = Product(a, b, batch.out);
      for (const Tensor& x : Layouts(a)) {
        for (const Tensor& y : Layouts(b)) {
          SCOPED_TRACE(x.ToString() + " " + y.ToString());
          ExpectTensor(*MatMul(x, y), batch.out, expected,
                       ProductTolerance(dtype, 5));
        }
      }
    }
  }
}

TEST(MatMulTest, OneMatrixForAllOfABatch) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = TestTensor({2, 3, 4, 5}, dtype, 1);
    const Tensor b = TestTensor({5, 6}, dtype, 2);
    const Tensor b4 = *b.View({1, 1, 5, 6});
    for (const Tensor& x : Layouts(a)) {
      ExpectTensor(*MatMul(x, b), {2, 3, 4, 6}, Product(a, b4, {2, 3, 4, 6}),
                   ProductTolerance(dtype, 5));
    }
    const Tensor left = TestTensor({6, 4}, dtype, 3);
    const Tensor left4 = *left.View({1, 1, 6, 4});
    ExpectTensor(*MatMul(left, a), {2, 3, 6, 5},
                 Product(left4, a, {2, 3, 6, 5}), ProductTolerance(dtype, 4));
  }
}

TEST(MatMulTest, VectorsAreRowsAndColumns) {
  const Tensor u = FromValues({1, 2, 3}, {3}), v = FromValues({4, 5, 6}, {3});
  ExpectTensor(*MatMul(u, v), {}, {32});
  const Tensor m = FromValues({1, 2, 3, 4, 5, 6}, {2, 3});
  ExpectTensor(*MatMul(m, u), {2}, {14, 32});
  ExpectTensor(*MatMul(FromValues({1, 10}, {2}), m), {3}, {41, 52, 63});
  ExpectTensor(*MatMul(*m.View({1, 2, 3}), u), {1, 2}, {14, 32});
  ExpectTensor(*MatMul(u, *m.View({1, 2, 3})->Transpose(1, 2)), {1, 2},
               {14, 32});
  ExpectTensor(*MatMul(Tensor::Zeros({0}), Tensor::Zeros({0})), {}, {0});
}

TEST(MatMulTest, BroadcastViewsAreCopied) {
  const Tensor a = *TestTensor({1, 5}).Expand({4, 5});
  const Tensor b = *TestTensor({5, 1}, DType::kF32, 2).Expand({5, 3});
  ExpectTensor(*MatMul(a, b), {4, 3}, Product(a, b, {4, 3}), 1e-5);
}

TEST(LinearTest, AddsBiasAndAppliesRelu) {
  for (const DType dtype : kFloatDTypes) {
    for (const Sizes& s : kSizes) {
      const Tensor x = TestTensor({s.m, s.k}, dtype, 1);
      const Tensor w = TestTensor({s.n, s.k}, dtype, 2);
      const Tensor bias = TestTensor({s.n}, dtype, 3);
      const Tensor wt = *w.T();
      auto expected = Product(x, wt, {s.m, s.n});
      const double tolerance = ProductTolerance(dtype, s.k);
      const auto relu = [](std::vector<double> values) {
        for (double& value : values) value = std::fmax(value, 0);
        return values;
      };
      SCOPED_TRACE(x.ToString() + " " + w.ToString());
      ExpectTensor(*Linear(x, w, Tensor()), {s.m, s.n}, expected, tolerance);
      ExpectTensor(*Linear(x, w, Tensor(), Activation::kRelu), {s.m, s.n},
                   relu(expected), tolerance);
      const std::vector<double> b = Values(bias);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += b[i % s.n];
      for (const Tensor& view : Layouts(x)) {
        for (const Tensor& w_view : Layouts(w)) {
          for (const Tensor& b_view : Layouts(bias)) {
            ExpectTensor(*Linear(view, w_view, b_view), {s.m, s.n}, expected,
                         tolerance);
            ExpectTensor(*Linear(view, w_view, b_view, Activation::kRelu),
                         {s.m, s.n}, relu(expected), tolerance);
          }
        }
      }
    }
  }
}

TEST(LinearTest, KeepsLeadingDimsAndNaN) {
  const Tensor w = TestTensor({4, 3}), bias = TestTensor({4});
  EXPECT_EQ(Linear(TestTensor({2, 5, 3}), w, bias)->shape(), Shape({2, 5, 4}));
  EXPECT_EQ(Linear(TestTensor({3}), w, bias)->shape(), Shape({4}));
  EXPECT_EQ(Linear(TestTensor({0, 3}), w, bias)->shape(), Shape({0, 4}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : kFloatDTypes) {
    const Tensor x = FromValues({nan, 1}, {2, 1}, dtype);
    const Tensor one = FromValues({-1}, {1, 1}, dtype);
    for (const Tensor& b : {Tensor(), Tensor::Zeros({1}, {dtype})}) {
      ExpectTensor(*Linear(x, one, b, Activation::kRelu), {2, 1}, {nan, 0});
    }
  }
}

TEST(LinearTest, Gradients) {
  for (const DType dtype : kFloatDTypes) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
      const Tensor x = TestTensor({2, 13, 7}, dtype, 1);
      const Tensor w = TestTensor({70, 7}, dtype, 2);
      const Tensor y = TestTensor({2, 13, 70}, dtype, 3);
      const Tensor dy = TestTensor({2, 13, 70}, dtype, 4);
      std::vector<double> dz = Values(dy);
      if (activation == Activation::kRelu) {
        const std::vector<double> out = Values(y);
        for (size_t i = 0; i < dz.size(); ++i) dz[i] = out[i] > 0 ? dz[i] : 0;
      }
      const Tensor dz2 = FromValues(dz, {26, 70}, dtype);
      const Tensor x2 = *x.View({26, 7});
      std::vector<double> db(70, 0.0);
      for (size_t i = 0; i < dz.size(); ++i) db[i % 70] += dz[i];
      for (const Tensor& dy_view : Layouts(dy)) {
        const auto grads = LinearGrad(x, w, y, dy_view, activation);
        ASSERT_THAT(grads, IsOk());
        const double tolerance = ProductTolerance(dtype, 70);
        ExpectTensor(grads->x, {2, 13, 7}, Product(dz2, w, {26, 7}), tolerance);
        ExpectTensor(grads->w, {70, 7}, Product(*dz2.T(), x2, {70, 7}),
                     tolerance);
        ExpectTensor(grads->bias, {70}, db, tolerance);
      }
      const auto none =
          LinearGrad(x, w, y, dy, activation, {false, false, false});
      ASSERT_THAT(none, IsOk());
      EXPECT_FALSE(none->x.defined() || none->w.defined() ||
                   none->bias.defined());
    }
  }
}

TEST(LinearTest, ReluGradientsOfManyShapes) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : kFloatDTypes) {
    for (const int64_t m : {1, 2, 7, 64, 515}) {
      for (const int64_t n : {1, 10, 16, 33}) {
        const Tensor x = TestTensor({m, 1}, dtype, 1);
        const Tensor w = TestTensor({n, 1}, dtype, 2);
        std::vector<double> out = Values(TestTensor({m, n}, dtype, 3));
        out[0] = nan;
        out[out.size() - 1] = 0;
        const Tensor dy = TestTensor({m, n}, dtype, 4);
        const std::vector<double> g = Values(dy);
        std::vector<double> db(static_cast<size_t>(n));
        for (size_t i = 0; i < g.size(); ++i) {
          db[i % db.size()] += out[i] <= 0 ? 0 : g[i];
        }
        const auto grads =
            LinearGrad(x, w, FromValues(out, {m, n}, dtype), dy,
                       Activation::kRelu, {.x = false, .w = false});
        ASSERT_THAT(grads, IsOk());
        ExpectTensor(grads->bias, {n}, db, ProductTolerance(dtype, m));
      }
    }
  }
}

TEST(MatMulTest, ErrorsNameOperationAndShapes) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const Tensor a = TestTensor({2, 3});
  EXPECT_THAT(MatMul(a, TestTensor({4, 2})),
              StatusIs(kBad, AllOf(HasSubstr("MatMul"), HasSubstr("f32[2, 3]"),
                                   HasSubstr("f32[4, 2]"))));
  EXPECT_THAT(MatMul(a, Tensor::Scalar(1)), StatusIs(kBad));
  EXPECT_THAT(MatMul(a, TestTensor({3, 2}, DType::kF64)), StatusIs(kBad));
  EXPECT_THAT(MatMul(TestTensor({2, 4, 3}), TestTensor({5, 3, 2})),
              StatusIs(kBad, HasSubstr("batch")));
  const Tensor whole = TestTensor({2, 2}, DType::kI64);
  EXPECT_THAT(MatMul(whole, whole), StatusIs(kBad));
  EXPECT_THAT(Linear(a, TestTensor({4, 2}), Tensor()), StatusIs(kBad));
  EXPECT_THAT(Linear(a, TestTensor({4, 3}), TestTensor({3})), StatusIs(kBad));
  EXPECT_THAT(LinearGrad(a, TestTensor({4, 3}), Tensor(), TestTensor({3, 4}),
                         Activation::kNone),
              StatusIs(kBad));
  EXPECT_THAT(LinearGrad(a, TestTensor({4, 3}), Tensor(), TestTensor({2, 4}),
                         Activation::kRelu),
              StatusIs(kBad));
}

TEST(MatMulTest, ThreadsAndShapesBeyondTheCache) {
  SetComputeThreads(2);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      for (int64_t n = 1; n < 1100; n += 1 + t) {
        const Tensor a = Tensor::Ones({1, n});
        const Tensor b = Tensor::Ones({n, 2});
        const std::vector<float> expected(2, static_cast<float>(n));
        ASSERT_EQ(MatMul(a, b)->ToVector<float>(), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  SetComputeThreads(1);
}

}  // namespace
}  // namespace hawser::tensor
