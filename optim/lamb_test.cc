#include "optim/lamb.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

// Algorithm 2 of You et al., ICLR 2020, for one layer, with the identity as
// phi.
class PaperLayer {
 public:
  PaperLayer(const LambOptions& options, std::vector<double> x)
      : o_(options), x_(std::move(x)), m_(x_.size()), v_(x_.size()) {}

  const std::vector<double>& Take(const std::vector<double>& g) {
    ++t_;
    std::vector<double> update(x_.size());
    double x_norm = 0;
    double update_norm = 0;
    for (size_t i = 0; i < x_.size(); ++i) {
      m_[i] = o_.beta1 * m_[i] + (1 - o_.beta1) * g[i];
      v_[i] = o_.beta2 * v_[i] + (1 - o_.beta2) * g[i] * g[i];
      const double m_hat = m_[i] / (1 - std::pow(o_.beta1, t_));
      const double v_hat = v_[i] / (1 - std::pow(o_.beta2, t_));
      update[i] = m_hat / (std::sqrt(v_hat) + o_.eps) + o_.weight_decay * x_[i];
      x_norm += x_[i] * x_[i];
      update_norm += update[i] * update[i];
    }
    x_norm = std::sqrt(x_norm);
    update_norm = std::sqrt(update_norm);
    const double ratio =
        x_norm == 0 || update_norm == 0 ? 1 : x_norm / update_norm;
    for (size_t i = 0; i < x_.size(); ++i) x_[i] -= o_.lr * ratio * update[i];
    return x_;
  }

 private:
  const LambOptions o_;
  std::vector<double> x_, m_, v_;
  int t_ = 0;
};

TEST(LambTest, StepsEqualThoseOfThePaper) {
  for (const LambOptions& options :
       {LambOptions{}, LambOptions{.lr = 0.02, .weight_decay = 0.01},
        LambOptions{.lr = 0.1,
        .beta1 = 0.8,
        .beta2 = 0.9,
        .eps = 0.01,
        .weight_decay = 0.5}}) {
    // Less than a vector, more than one, more than a chunk of the sums.
    for (const int64_t width : {1, 3, 19, 2500}) {
      const auto rule = MakeLamb(Lamb(options));
      ASSERT_THAT(rule, IsOk());
      std::vector<double> start(width);
      for (int64_t i = 0; i < width; ++i) start[i] = std::cos(0.3 * i);
      Tensor parameter = Tensor::FromVector(start, {width});
      ParameterState state;
      PaperLayer paper(options, start);
      for (int t = 0; t < 6; ++t) {
        std::vector<double> gradient(width);
        for (int64_t i = 0; i < width; ++i) gradient[i] = std::sin(2.0 * i + t);
        ASSERT_THAT(
            (*rule)->Apply(parameter, Tensor::FromVector(gradient, {width}),
                           state, {options.lr}),
            IsOk());
        ASSERT_THAT(parameter.ToVector<double>(),
                    Pointwise(DoubleNear(1e-12), paper.Take(gradient)))
            << "width " << width << ", step " << t;
      }
    }
  }
}

TEST(LambTest, ZeroParameterHasRatioOne) {
  const auto rule = MakeLamb(Lamb({.lr = 0.1, .eps = 0}));
  Tensor parameter = Tensor::Zeros({3}, {tensor::DType::kF64});
  ParameterState state;
  ASSERT_THAT(
      (*rule)->Apply(parameter, Tensor::FromVector<double>({1, -2, 4}, {3}),
                     state, {0.1}),
      IsOk());
  EXPECT_THAT(parameter.ToVector<double>(),
              ElementsAre(DoubleNear(-0.1, 1e-15), DoubleNear(0.1, 1e-15),
                          DoubleNear(-0.1, 1e-15)));
}

}  // namespace
}  // namespace hawser::optim
