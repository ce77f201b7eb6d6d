#include "tensor/ops/layer_norm.h"

#include <cmath>
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

struct NormCase {
  Shape x;
  int normalized_rank;
};

const NormCase kCases[] = {{{7}, 1},         {{5, 32}, 1},   {{3, 1}, 1},
                           {{2, 3, 100}, 1}, {{4, 5, 7}, 2}, {{0, 6}, 1}};
constexpr double kEps = 1e-3;

// Everything that the functions give, in double.
struct Expected {
  std::vector<double> y, mean, rstd, dx, dw, db;
};

Expected Reference(const std::vector<double>& x, const std::vector<double>& w,
                   const std::vector<double>& b, const std::vector<double>& dy,
                   size_t cols) {
  Expected e;
  e.dw.resize(cols);
  e.db.resize(cols);
  const double n = static_cast<double>(cols);
  for (size_t start = 0; start < x.size(); start += cols) {
    double mean = 0, variance = 0, sum_g = 0, sum_gh = 0;
    for (size_t j = 0; j < cols; ++j) mean += x[start + j] / n;
    for (size_t j = 0; j < cols; ++j) {
      variance += (x[start + j] - mean) * (x[start + j] - mean) / n;
    }
    const double rstd = 1 / std::sqrt(variance + kEps);
    for (size_t j = 0; j < cols; ++j) {
      const double h = (x[start + j] - mean) * rstd;
      e.y.push_back(h * w[j] + b[j]);
      sum_g += dy[start + j] * w[j];
      sum_gh += dy[start + j] * w[j] * h;
      e.dw[j] += dy[start + j] * h;
      e.db[j] += dy[start + j];
    }
    for (size_t j = 0; j < cols; ++j) {
      const double h = (x[start + j] - mean) * rstd;
      e.dx.push_back(rstd *
                     (dy[start + j] * w[j] - sum_g / n - h * sum_gh / n));
    }
    e.mean.push_back(mean);
    e.rstd.push_back(rstd);
  }
  return e;
}

TEST(LayerNormTest, MatchesLoopsOverDoubles) {
  for (const NormCase& c : kCases) {
    const auto dims = c.x.span();
    const Shape normalized(dims.subspan(dims.size() - c.normalized_rank));
    const auto cols = static_cast<size_t>(normalized.num_elements());
    for (const DType dtype : kFloatDTypes) {
      for (const bool affine : {true, false}) {
        const Tensor x = TestTensor(c.x, dtype, 1);
        const Tensor dy = TestTensor(c.x, dtype, 2);
        Tensor w = Tensor::Ones(normalized, {dtype});
        Tensor b = Tensor::Zeros(normalized, {dtype});
        if (affine) {
          w = TestTensor(normalized, dtype, 3);
          b = TestTensor(normalized, dtype, 4);
        }
        const Expected e =
            Reference(Values(x), Values(w), Values(b), Values(dy), cols);
        for (size_t layout = 0; layout < Layouts(x).size(); ++layout) {
          SCOPED_TRACE(x.ToString());
          const Tensor x_view = Layouts(x)[layout];
          const Tensor w_view = affine ? Layouts(w)[layout] : Tensor();
          const Tensor b_view = affine ? Layouts(b)[layout] : Tensor();
          const auto result =
              LayerNorm(x_view, c.normalized_rank, w_view, b_view, kEps);
          ASSERT_THAT(result, IsOk());
          const double tolerance = 20 * Tolerance(dtype);
          const Shape rows = {static_cast<int64_t>(e.mean.size())};
          ExpectTensor(result->y, c.x, e.y, tolerance);
          ExpectTensor(result->mean, rows, e.mean);
          ExpectTensor(result->rstd, rows, e.rstd, 1e-4);
          const auto grads =
              LayerNormGrad(Layouts(dy)[layout], x_view, c.normalized_rank,
                            result->mean, result->rstd, w_view);
          ASSERT_THAT(grads, IsOk());
          ExpectTensor(grads->x, c.x, e.dx, tolerance);
          ExpectTensor(grads->weight, normalized, e.dw, tolerance);
          ExpectTensor(grads->bias, normalized, e.db, tolerance);
        }
      }
    }
  }
}

TEST(LayerNormTest, ErrorsNameWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const Tensor x = TestTensor({2, 3});
  EXPECT_THAT(LayerNorm(x, 0, Tensor(), Tensor()),
              StatusIs(kBad, HasSubstr("LayerNorm")));
  EXPECT_THAT(LayerNorm(x, 3, Tensor(), Tensor()), StatusIs(kBad));
  for (const double eps : {-1e-5, std::nan("")}) {
    EXPECT_THAT(LayerNorm(x, 1, Tensor(), Tensor(), eps),
                StatusIs(kBad, HasSubstr("eps")));
  }
  EXPECT_THAT(LayerNorm(x, 1, Tensor(), Tensor(), 0), IsOk());
  EXPECT_THAT(LayerNorm(x, 1, TestTensor({2}), Tensor()), StatusIs(kBad));
  EXPECT_THAT(LayerNorm(x, 1, Tensor(), TestTensor({3}, DType::kF64)),
              StatusIs(kBad));
  const Tensor two = TestTensor({2});
  EXPECT_THAT(LayerNormGrad(TestTensor({3, 2}), x, 1, two, two, Tensor()),
              StatusIs(kBad));
  EXPECT_THAT(LayerNormGrad(x, x, 1, TestTensor({3}), two, Tensor()),
              StatusIs(kBad));
  EXPECT_THAT(LayerNormGrad(x, x, 1, two, Tensor(), Tensor()), StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
