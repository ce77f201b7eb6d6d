#include "tensor/ops/pool.h"

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

struct PoolCase {
  Shape x, y;
  Pool2dOptions options;
};

const PoolCase kCases[] = {
    {{2, 3, 8, 6}, {2, 3, 4, 3}, {.kernel = {2, 2}}},
    {{1, 2, 7, 7},
     {1, 2, 4, 4},
     {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
    {{1, 1, 5, 9}, {1, 1, 4, 7}, {.kernel = {2, 3}, .stride = {1, 1}}},
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {.kernel = {1, 1}}},
    {{0, 3, 4, 4}, {0, 3, 2, 2}, {.kernel = {2, 2}}},
    {{1, 2, 4, 4},
     {1, 2, 3, 3},
     {.kernel = {2, 2},
      .stride = {2, 2},
      .padding = {1, 1},
      .count_include_pad = false}},
};

// Calls visit(x position, y position) for the elements of every window.
template <class Visit>
void ForEachElement(const PoolCase& c, Visit&& visit) {
  const auto stride = [&](int i) {
    return c.options.stride[i] != 0 ? c.options.stride[i] : c.options.kernel[i];
  };
  ForEachIndex(c.y, [&](const std::vector<int64_t>& out) {
    for (int64_t i = 0; i < c.options.kernel[0]; ++i) {
      for (int64_t j = 0; j < c.options.kernel[1]; ++j) {
        const int64_t y = out[2] * stride(0) - c.options.padding[0] + i;
        const int64_t x = out[3] * stride(1) - c.options.padding[1] + j;
        if (y < 0 || y >= c.x[2] || x < 0 || x >= c.x[3]) continue;
        visit(PositionOf({out[0], out[1], y, x}, c.x), PositionOf(out, c.y));
      }
    }
  });
}

TEST(PoolTest, MaxAndItsGradient) {
  for (const PoolCase& c : kCases) {
    const int64_t plane = c.x[2] * c.x[3];
    for (const DType dtype : kFloatDTypes) {
      const Tensor x = TestTensor(c.x, dtype, 1);
      const Tensor dy = TestTensor(c.y, dtype, 2);
      const auto xs = Values(x), dys = Values(dy);
      const size_t outputs = static_cast<size_t>(c.y.num_elements());
      std::vector<double> y(outputs, -1e30), index(outputs), dx(xs.size());
      ForEachElement(c, [&](int64_t i, int64_t k) {
        if (xs[i] > y[k]) {
          y[k] = xs[i];
          index[k] = static_cast<double>(i % plane);
        }
      });
      for (size_t k = 0; k < outputs; ++k) {
        const auto image = static_cast<int64_t>(k) / (c.y[2] * c.y[3]);
        dx[image * plane + static_cast<int64_t>(index[k])] += dys[k];
      }
      for (size_t layout = 0; layout < 4; ++layout) {
        SCOPED_TRACE(x.ToString());
        const auto result = MaxPool2d(Layouts(x)[layout], c.options);
        ASSERT_THAT(result, IsOk());
        ExpectTensor(result->values, c.y, y);
        ExpectTensor(result->indices, c.y, index);
        ExpectTensor(*MaxPool2dGrad(Layouts(dy)[layout],
                                    Layouts(result->indices)[layout], c.x),
                     c.x, dx, 2 * Tolerance(dtype));
      }
    }
  }
}

TEST(PoolTest, AverageAndItsGradient) {
  for (const PoolCase& c : kCases) {
    for (const DType dtype : kFloatDTypes) {
      const Tensor x = TestTensor(c.x, dtype, 1);
      const Tensor dy = TestTensor(c.y, dtype, 2);
      const auto xs = Values(x), dys = Values(dy);
      const size_t outputs = static_cast<size_t>(c.y.num_elements());
      std::vector<double> y(outputs), count(outputs), dx(xs.size());
      ForEachElement(c, [&](int64_t i, int64_t k) {
        y[k] += xs[i];
        count[k] += 1;
      });
      const double area =
          static_cast<double>(c.options.kernel[0] * c.options.kernel[1]);
      if (c.options.count_include_pad) count.assign(outputs, area);
      for (size_t k = 0; k < outputs; ++k) y[k] /= count[k];
      ForEachElement(c,
                     [&](int64_t i, int64_t k) { dx[i] += dys[k] / count[k]; });
      for (size_t layout = 0; layout < 4; ++layout) {
        SCOPED_TRACE(x.ToString());
        ExpectTensor(*AvgPool2d(Layouts(x)[layout], c.options), c.y, y);
        ExpectTensor(*AvgPool2dGrad(Layouts(dy)[layout], c.x, c.options), c.x,
                     dx, 2 * Tolerance(dtype));
      }
    }
  }
}

TEST(PoolTest, NaNIsTheMaximum) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto result =
      MaxPool2d(FromValues({5, nan, 9, nan}, {1, 1, 2, 2}), {.kernel = {2, 2}});
  ASSERT_THAT(result, IsOk());
  ExpectTensor(result->values, {1, 1, 1, 1}, {nan});
  ExpectTensor(result->indices, {1, 1, 1, 1}, {1});
}

TEST(PoolTest, ErrorsNameWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const Tensor x = TestTensor({1, 2, 4, 4});
  EXPECT_THAT(MaxPool2d(TestTensor({4, 4}), {.kernel = {2, 2}}),
              StatusIs(kBad, HasSubstr("MaxPool2d")));
  EXPECT_THAT(AvgPool2d(x, {.kernel = {5, 1}}), StatusIs(kBad));
  EXPECT_THAT(AvgPool2d(x, {.kernel = {0, 1}}), StatusIs(kBad));
  EXPECT_THAT(MaxPool2d(x, {.kernel = {2, 2}, .padding = {2, 0}}),
              StatusIs(kBad, HasSubstr("padding")));
  EXPECT_THAT(
      MaxPool2d(Tensor::Zeros({1, 1, 2, 2}, {DType::kI64}), {.kernel = {2, 2}}),
      StatusIs(kBad));
  EXPECT_THAT(AvgPool2dGrad(x, {1, 2, 9, 8}, {.kernel = {2, 2}}),
              StatusIs(absl::StatusCode::kOk));
  EXPECT_THAT(AvgPool2dGrad(x, {1, 2, 10, 8}, {.kernel = {2, 2}}),
              StatusIs(kBad));
  const Tensor indices = Tensor::Full({1, 2, 4, 4}, 64, {DType::kI64});
  EXPECT_THAT(MaxPool2dGrad(x, indices, {1, 2, 8, 8}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("id 64")));
  EXPECT_THAT(MaxPool2dGrad(x, indices, {1, 3, 8, 8}), StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
