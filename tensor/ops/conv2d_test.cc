#include "tensor/ops/conv2d.h"

#include <cmath>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using async::StatusIs;
using ::testing::HasSubstr;

struct ConvCase {
  Shape x, w, y;
  Conv2dOptions options;
};

const ConvCase kCases[] = {
    {{2, 1, 8, 8}, {4, 1, 3, 3}, {2, 4, 6, 6}, {}},
    {{1, 3, 7, 5}, {2, 3, 3, 2}, {1, 2, 7, 6}, {.padding = {1, 1}}},
    {{2, 4, 9, 9},
     {6, 2, 3, 3},
     {2, 6, 5, 4},
     {.stride = {2, 2}, .padding = {1, 0}, .groups = 2}},
    {{1, 4, 9, 9},
     {4, 1, 3, 3},
     {1, 4, 5, 5},
     {.dilation = {2, 2}, .groups = 4}},
    {{3, 5, 4, 4}, {7, 5, 1, 1}, {3, 7, 4, 4}, {}},
    {{1, 2, 1, 1}, {3, 2, 1, 1}, {1, 3, 1, 1}, {}},
    {{0, 2, 4, 4}, {3, 2, 3, 3}, {0, 3, 2, 2}, {}},
    {{2, 0, 4, 4}, {3, 0, 3, 3}, {2, 3, 2, 2}, {}},
};

// Calls visit(x, w, y positions) for every product of the convolution.
template <class Visit>
void ForEachProduct(const ConvCase& c, Visit&& visit) {
  const int64_t per_group = c.w[1], filters = c.w[0] / c.options.groups;
  ForEachIndex(c.y, [&](const std::vector<int64_t>& out) {
    ForEachIndex({per_group, c.w[2], c.w[3]},
                 [&](const std::vector<int64_t>& in) {
                   const int64_t y = out[2] * c.options.stride[0] -
                                     c.options.padding[0] +
                                     in[1] * c.options.dilation[0];
                   const int64_t x = out[3] * c.options.stride[1] -
                                     c.options.padding[1] +
                                     in[2] * c.options.dilation[1];
                   if (y < 0 || y >= c.x[2] || x < 0 || x >= c.x[3]) return;
                   const int64_t channel = out[1] / filters * per_group + in[0];
                   visit(PositionOf({out[0], channel, y, x}, c.x),
                         PositionOf({out[1], in[0], in[1], in[2]}, c.w),
                         PositionOf(out, c.y));
                 });
  });
}

TEST(Conv2dTest, MatchesLoopsOverDoubles) {
  for (const ConvCase& c : kCases) {
    for (const DType dtype : kFloatDTypes) {
      const Tensor x = TestTensor(c.x, dtype, 1);
      const Tensor w = TestTensor(c.w, dtype, 2);
      const Tensor bias = TestTensor({c.w[0]}, dtype, 3);
      const Tensor dy = TestTensor(c.y, dtype, 4);
      const auto xs = Values(x), ws = Values(w), bs = Values(bias),
                 dys = Values(dy);
      std::vector<double> y(static_cast<size_t>(c.y.num_elements())), biased,
          dx(xs.size()), dw(ws.size()), db(bs.size());
      ForEachProduct(c, [&](int64_t i, int64_t j, int64_t k) {
        y[k] += xs[i] * ws[j];
        dx[i] += dys[k] * ws[j];
        dw[j] += dys[k] * xs[i];
      });
      biased = y;
      const int64_t plane = c.y[2] * c.y[3];
      for (size_t k = 0; k < y.size(); ++k) {
        const size_t filter = static_cast<int64_t>(k) / plane % c.y[1];
        biased[k] += bs[filter];
        db[filter] += dys[k];
      }
      const double tolerance = Tolerance(dtype) * 20;
      for (size_t layout = 0; layout < 4; ++layout) {
        const Tensor x_view = Layouts(x)[layout];
        const Tensor w_view = Layouts(w)[layout];
        const Tensor dy_view = Layouts(dy)[layout];
        SCOPED_TRACE(x.ToString() + " * " + w.ToString());
        ExpectTensor(*Conv2d(x_view, w_view, Tensor(), c.options), c.y, y,
                     tolerance);
        ExpectTensor(*Conv2d(x_view, w_view, Layouts(bias)[layout], c.options),
                     c.y, biased, tolerance);
        ExpectTensor(*Conv2dInputGrad(dy_view, w_view, c.x, c.options), c.x, dx,
                     tolerance);
        ExpectTensor(*Conv2dWeightGrad(dy_view, x_view, c.w, c.options), c.w,
                     dw, tolerance);
        ExpectTensor(*Conv2dBiasGrad(dy_view), {c.w[0]}, db, tolerance);
      }
    }
  }
}

TEST(Conv2dTest, ErrorsNameWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const Tensor x = TestTensor({1, 4, 5, 5}), w = TestTensor({2, 4, 3, 3});
  EXPECT_THAT(Conv2d(TestTensor({4, 5, 5}), w, Tensor()),
              StatusIs(kBad, HasSubstr("x is [4, 5, 5]")));
  EXPECT_THAT(Conv2d(x, TestTensor({2, 3, 3, 3}), Tensor()),
              StatusIs(kBad, HasSubstr("channels")));
  EXPECT_THAT(Conv2d(x, TestTensor({2, 4, 6, 3}), Tensor()),
              StatusIs(kBad, HasSubstr("larger than the padded input")));
  EXPECT_THAT(Conv2d(x, w, TestTensor({3})), StatusIs(kBad));
  EXPECT_THAT(Conv2d(x, TestTensor({2, 4, 3, 3}, DType::kF64), Tensor()),
              StatusIs(kBad, HasSubstr("dtypes differ")));
  EXPECT_THAT(Conv2d(x, w, Tensor(), {.stride = {0, 1}}),
              StatusIs(kBad, HasSubstr("stride")));
  EXPECT_THAT(Conv2d(x, w, Tensor(), {.padding = {-1, 0}}), StatusIs(kBad));
  EXPECT_THAT(Conv2d(x, w, Tensor(), {.groups = 0}), StatusIs(kBad));
  EXPECT_THAT(Conv2d(x, w, Tensor(), {.groups = 2}), StatusIs(kBad));
  EXPECT_THAT(Conv2dInputGrad(TestTensor({1, 2, 4, 3}), w, x.shape()),
              StatusIs(kBad, HasSubstr("[1, 2, 3, 3]")));
  EXPECT_THAT(Conv2dWeightGrad(TestTensor({2, 2, 3, 3}), x, w.shape()),
              StatusIs(kBad));
  EXPECT_THAT(Conv2dBiasGrad(TestTensor({2, 3})), StatusIs(kBad));
  EXPECT_THAT(Conv2d(Tensor(), w, Tensor()), StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
