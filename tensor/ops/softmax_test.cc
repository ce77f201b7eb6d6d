#include "tensor/ops/softmax.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

// For every element of `shape`: the position of the first element of its line
// along `dim`.
std::vector<size_t> LineOf(const Shape& shape, int dim) {
  std::vector<size_t> lines;
  ForEachIndex(shape, [&](std::vector<int64_t> index) {
    if (!index.empty()) index[static_cast<size_t>(dim)] = 0;
    int64_t position = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      position = position * shape[d] + index[static_cast<size_t>(d)];
    }
    lines.push_back(static_cast<size_t>(position));
  });
  return lines;
}

std::vector<double> LineSums(const std::vector<double>& values,
                             const std::vector<size_t>& lines) {
  std::vector<double> sums(values.size(), 0.0);
  for (size_t i = 0; i < values.size(); ++i) sums[lines[i]] += values[i];
  return sums;
}

struct SoftmaxCase {
  Shape shape;
  int64_t dim;
};

const SoftmaxCase kCases[] = {{{}, 0},           {{10}, 0},      {{5, 10}, 1},
                              {{5, 10}, 0},      {{3, 600}, -1}, {{4, 1}, 1},
                              {{2, 3, 17}, 1},   {{2, 0, 3}, 2}, {{2, 0, 3}, 1},
                              {{2, 3, 4, 5}, -3}};

int Resolved(const SoftmaxCase& c) {
  return static_cast<int>(c.dim < 0 ? c.dim + c.shape.rank() : c.dim);
}

TEST(SoftmaxTest, MatchesLoopsOverDoubles) {
  for (const SoftmaxCase& c : kCases) {
    const auto lines = LineOf(c.shape, Resolved(c));
    for (const DType dtype : kFloatDTypes) {
      const Tensor x = TestTensor(c.shape, dtype, 1, -5, 5);
      std::vector<double> exps = Values(x);
      for (double& v : exps) v = std::exp(v);
      const std::vector<double> sums = LineSums(exps, lines);
      std::vector<double> softmax, logs;
      for (size_t i = 0; i < exps.size(); ++i) {
        softmax.push_back(exps[i] / sums[lines[i]]);
        logs.push_back(std::log(softmax.back()));
      }
      for (const Tensor& view : Layouts(x)) {
        SCOPED_TRACE(view.ToString());
        ExpectTensor(*Softmax(view, c.dim), c.shape, softmax);
        ExpectTensor(*LogSoftmax(view, c.dim), c.shape, logs);
      }
    }
  }
}

TEST(SoftmaxTest, GradientsMatchLoopsOverDoubles) {
  for (const SoftmaxCase& c : kCases) {
    const auto lines = LineOf(c.shape, Resolved(c));
    for (const DType dtype : kFloatDTypes) {
      const Tensor y = TestTensor(c.shape, dtype, 1, 0, 1);
      const Tensor dy = TestTensor(c.shape, dtype, 2);
      const std::vector<double> p = Values(y), g = Values(dy);
      std::vector<double> products;
      for (size_t i = 0; i < p.size(); ++i) products.push_back(p[i] * g[i]);
      const auto dots = LineSums(products, lines), sums = LineSums(g, lines);
      std::vector<double> dsoftmax, dlog;
      for (size_t i = 0; i < p.size(); ++i) {
        dsoftmax.push_back(p[i] * (g[i] - dots[lines[i]]));
        dlog.push_back(g[i] - std::exp(p[i]) * sums[lines[i]]);
      }
      for (const Tensor& y_view : Layouts(y)) {
        for (const Tensor& dy_view : Layouts(dy)) {
          SCOPED_TRACE(y_view.ToString());
          const double tolerance = 20 * Tolerance(dtype);
          ExpectTensor(*SoftmaxGrad(y_view, dy_view, c.dim), c.shape, dsoftmax,
                       tolerance);
          ExpectTensor(*LogSoftmaxGrad(y_view, dy_view, c.dim), c.shape, dlog,
                       tolerance);
        }
      }
    }
  }
}

TEST(SoftmaxTest, LargeAndSpecialValues) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    ExpectTensor(*Softmax(FromValues({1e4, 1e4}, {2}, dtype), 0), {2},
                 {0.5, 0.5});
    ExpectTensor(*LogSoftmax(FromValues({-1e4, 0}, {2}, dtype), 0), {2},
                 {-1e4, 0});
    ExpectTensor(*Softmax(FromValues({-kInf, 0}, {2}, dtype), 0), {2}, {0, 1});
    ExpectTensor(*Softmax(FromValues({kNaN, 0}, {2}, dtype), 0), {2},
                 {kNaN, kNaN});
    ExpectTensor(*Softmax(FromValues({-kInf, -kInf}, {2}, dtype), 0), {2},
                 {kNaN, kNaN});
  }
}

TEST(SoftmaxTest, LogSoftmaxKeepsTheNormalizerBesideLargeLogits) {
  const std::pair<DType, double> large[] = {{DType::kF32, 1e8},
                                            {DType::kF64, 1e18},
                                            {DType::kF16, 6e4},
                                            {DType::kBF16, 1e30}};
  for (const auto& [dtype, x] : large) {
    for (const double logit : {x, -x}) {
      const Tensor logits =
          FromValues({logit, logit, logit, logit}, {4}, dtype);
      const double log = -std::log(4.0);
      ExpectTensor(*LogSoftmax(logits, 0), {4}, {log, log, log, log});
    }
  }
}

TEST(SoftmaxCrossEntropyTest, LossProbabilitiesAndGradient) {
  for (const DType dtype : kFloatDTypes) {
    for (const int64_t c : {1, 10, 16, 600}) {
      constexpr int64_t kRows = 7;
      const Tensor logits = TestTensor({kRows, c}, dtype, 1, -4, 4);
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < kRows; ++i) ids.push_back(i * 5 % c);
      const Tensor labels = Tensor::FromVector(ids, {kRows});
      const std::vector<double> x = Values(logits);
      std::vector<double> probs, gradient;
      double loss = 0;
      for (size_t i = 0; i < kRows; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < c; ++j) sum += std::exp(x[i * c + j]);
        loss -= (x[i * c + ids[i]] - std::log(sum)) / kRows;
        for (int64_t j = 0; j < c; ++j) {
          probs.push_back(std::exp(x[i * c + j]) / sum);
          const double onehot = j == ids[i] ? 1 : 0;
          gradient.push_back(3 * (probs.back() - onehot) / kRows);
        }
      }
      for (const Tensor& view : Layouts(logits)) {
        for (const Tensor& label_view : Layouts(labels)) {
          const auto result = SoftmaxCrossEntropy(view, label_view);
          ASSERT_THAT(result, IsOk());
          ExpectTensor(result->loss, {}, {loss});
          ExpectTensor(result->probs, {kRows, c}, probs);
          for (const Tensor& probs_view : Layouts(result->probs)) {
            ExpectTensor(*SoftmaxCrossEntropyGrad(probs_view, label_view,
                                                  Tensor::Scalar(3, {dtype})),
                         {kRows, c}, gradient);
          }
        }
      }
    }
  }
}

TEST(SoftmaxCrossEntropyTest, NoRowsHaveNoMean) {
  const Tensor labels = Tensor::Zeros({0}, {DType::kI64});
  const auto result = SoftmaxCrossEntropy(Tensor::Zeros({0, 3}), labels);
  ASSERT_THAT(result, IsOk());
  ExpectTensor(result->loss, {}, {kNaN});
  EXPECT_THAT(SoftmaxCrossEntropyGrad(result->probs, labels, Tensor::Scalar(1)),
              IsOk());
}

TEST(SoftmaxCrossEntropyTest, BadLabelsAreNamed) {
  const Tensor logits = TestTensor({3, 4});
  for (const int64_t bad : {int64_t{-1}, int64_t{4}}) {
    const Tensor labels = Tensor::FromVector<int64_t>({0, 1, bad}, {3});
    const auto names = AllOf(HasSubstr(absl::StrCat("id ", bad)),
                             HasSubstr("position 2"), HasSubstr("[0, 4)"));
    EXPECT_THAT(SoftmaxCrossEntropy(logits, labels),
                StatusIs(absl::StatusCode::kOutOfRange, names));
    EXPECT_THAT(SoftmaxCrossEntropyGrad(logits, labels, Tensor::Scalar(1)),
                StatusIs(absl::StatusCode::kOutOfRange, names));
  }
}

TEST(SoftmaxTest, ErrorsNameWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const Tensor x = TestTensor({3, 4});
  const Tensor labels = Tensor::Zeros({3}, {DType::kI64});
  EXPECT_THAT(Softmax(x, 2), StatusIs(kBad, HasSubstr("Softmax: dim 2")));
  EXPECT_THAT(Softmax(Tensor::Zeros({2}, {DType::kI64}), 0), StatusIs(kBad));
  EXPECT_THAT(SoftmaxGrad(x, TestTensor({4}), 0), StatusIs(kBad));
  EXPECT_THAT(SoftmaxCrossEntropy(x, Tensor::Zeros({3}, {DType::kI32})),
              StatusIs(kBad, HasSubstr("i64")));
  EXPECT_THAT(SoftmaxCrossEntropy(x, Tensor::Zeros({4}, {DType::kI64})),
              StatusIs(kBad));
  EXPECT_THAT(SoftmaxCrossEntropyGrad(x, labels, TestTensor({2})),
              StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
