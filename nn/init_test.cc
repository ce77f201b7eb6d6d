#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::hawser::tensor::Generator;
using ::hawser::tensor::Shape;
using ::testing::Each;

using Fill = std::function<absl::Status(Tensor&, Generator&)>;

struct Moments {
  double mean = 0;
  double stddev = 0;
  double low = 0;
  double high = 0;
};

Moments Filled(const Shape& shape, const Fill& fill) {
  Generator generator(3);
  Tensor tensor = Tensor::Empty(shape, {.dtype = DType::kF64});
  EXPECT_THAT(fill(tensor, generator), IsOk());
  const std::vector<double> values = tensor.ToVector<double>();
  Moments moments;
  for (const double value : values) moments.mean += value / values.size();
  for (const double value : values) {
    moments.stddev += (value - moments.mean) * (value - moments.mean);
  }
  moments.stddev = std::sqrt(moments.stddev / values.size());
  moments.low = *std::min_element(values.begin(), values.end());
  moments.high = *std::max_element(values.begin(), values.end());
  return moments;
}

TEST(InitTest, Constant) {
  Tensor tensor = Tensor::Empty({2, 3});
  ASSERT_THAT(FillConstant(tensor, 0.5), IsOk());
  EXPECT_THAT(tensor.ToVector<float>(), Each(0.5f));
}

TEST(InitTest, UniformAndNormal) {
  const Moments uniform = Filled({100, 200}, [](Tensor& t, Generator& g) {
    return FillUniform(t, -1, 3, g);
  });
  EXPECT_NEAR(uniform.mean, 1, 0.03);
  EXPECT_NEAR(uniform.stddev, 4 / std::sqrt(12), 0.02);
  EXPECT_GE(uniform.low, -1);
  EXPECT_LT(uniform.high, 3);
  const Moments normal = Filled({100, 200}, [](Tensor& t, Generator& g) {
    return FillNormal(t, -2, 0.5, g);
  });
  EXPECT_NEAR(normal.mean, -2, 0.02);
  EXPECT_NEAR(normal.stddev, 0.5, 0.02);
}

TEST(InitTest, TruncatedNormalIsInRangeWithTheRightMoments) {
  const Moments wide = Filled({100, 200}, [](Tensor& t, Generator& g) {
    return FillTruncatedNormal(t, {}, g);
  });
  EXPECT_NEAR(wide.mean, 0, 0.02);
  // A standard normal, truncated at two standard deviations.
  EXPECT_NEAR(wide.stddev, 0.8796, 0.01);
  EXPECT_GE(wide.low, -2);
  EXPECT_LE(wide.high, 2);
  // Only a tail, for which rejection sampling would take very long.
  const Moments tail = Filled({100, 200}, [](Tensor& t, Generator& g) {
    return FillTruncatedNormal(t, {.stddev = 0.1, .low = 0.5, .high = 0.6}, g);
  });
  EXPECT_GE(tail.low, 0.5);
  EXPECT_LE(tail.high, 0.6);
  EXPECT_NEAR(tail.mean, 0.5184, 0.001);
}

TEST(InitTest, TruncatedNormalFarInTheTail) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  struct Tail {
    double start, width;
    // Mean distance from the start. The distribution is nearly exponential.
    double mean;
  };
  const Tail tails[] = {{10, 1, 0.09809},
                        {10, kInf, 0.09809},
                        {40, 10, 0.024969},
                        {1e3, kInf, 1e-3},
                        {1e3, 1e-6, 5e-7}};
  for (const Tail& tail : tails) {
    for (const bool upper : {true, false}) {
      const double end = tail.start + tail.width;
      const TruncatedNormalOptions options = {
          .mean = 3,
          .stddev = 2,
          .low = 3 + 2 * (upper ? tail.start : -end),
          .high = 3 + 2 * (upper ? end : -tail.start)};
      const Moments drawn = Filled({100, 200}, [&](Tensor& t, Generator& g) {
        return FillTruncatedNormal(t, options, g);
      });
      EXPECT_GE(drawn.low, options.low);
      EXPECT_LE(drawn.high, options.high);
      const double distance =
          upper ? drawn.mean - options.low : options.high - drawn.mean;
      EXPECT_NEAR(distance / (2 * tail.mean), 1, 0.03)
          << tail.start << " " << tail.width;
      EXPECT_GT(drawn.stddev, tail.mean / 2);
    }
  }
}

TEST(InitTest, TruncatedNormalAtTheEndsOfTheRange) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const TruncatedNormalOptions cases[] = {
      {.low = -kInf, .high = kInf},
      {.low = -50, .high = 1e300},
      {.low = 1e200, .high = kInf},
      {.stddev = 1e-320, .low = 1, .high = 2}};
  for (const TruncatedNormalOptions& options : cases) {
    const Moments drawn = Filled({100, 20}, [&](Tensor& t, Generator& g) {
      return FillTruncatedNormal(t, options, g);
    });
    EXPECT_GE(drawn.low, options.low);
    EXPECT_LE(drawn.high, options.low > 0 ? options.low : 6);
  }
}

TEST(InitTest, XavierUsesBothFans) {
  // Fan-in 20 * 3, fan-out 100 * 3.
  const Moments uniform = Filled({100, 20, 3}, [](Tensor& t, Generator& g) {
    return FillXavierUniform(t, 2, g);
  });
  EXPECT_NEAR(uniform.stddev, 2 * std::sqrt(2.0 / 360), 0.003);
  EXPECT_LT(uniform.high, 2 * std::sqrt(6.0 / 360));
  const Moments normal = Filled({100, 20, 3}, [](Tensor& t, Generator& g) {
    return FillXavierNormal(t, 2, g);
  });
  EXPECT_NEAR(normal.stddev, 2 * std::sqrt(2.0 / 360), 0.004);
}

TEST(InitTest, KaimingUsesTheChosenFan) {
  const Moments in = Filled({100, 20, 3}, [](Tensor& t, Generator& g) {
    return FillKaimingUniform(t, {}, g);
  });
  EXPECT_NEAR(in.stddev, std::sqrt(2.0 / 60), 0.005);
  EXPECT_LT(in.high, std::sqrt(6.0 / 60));
  const Moments out = Filled({100, 20, 3}, [](Tensor& t, Generator& g) {
    return FillKaimingNormal(t, {.gain = 1, .fan = Fan::kOut}, g);
  });
  EXPECT_NEAR(out.stddev, std::sqrt(1.0 / 300), 0.002);
}

TEST(InitTest, OrthogonalRowsOrColumns) {
  for (const Shape& shape :
       {Shape{4, 7}, Shape{7, 4}, Shape{5, 5}, Shape{3, 2, 4}}) {
    Generator generator(3);
    Tensor tensor = Tensor::Empty(shape, {.dtype = DType::kF64});
    ASSERT_THAT(FillOrthogonal(tensor, 2, generator), IsOk());
    const int64_t rows = shape[0];
    const int64_t columns = tensor.num_elements() / rows;
    const std::vector<double> m = tensor.ToVector<double>();
    const bool by_row = rows <= columns;
    const int64_t count = by_row ? rows : columns;
    const int64_t width = by_row ? columns : rows;
    for (int64_t a = 0; a < count; ++a) {
      for (int64_t b = 0; b < count; ++b) {
        double dot = 0;
        for (int64_t i = 0; i < width; ++i) {
          dot += by_row ? m[a * columns + i] * m[b * columns + i]
                        : m[i * columns + a] * m[i * columns + b];
        }
        EXPECT_NEAR(dot, a == b ? 4 : 0, 1e-12);
      }
    }
  }
}

TEST(InitTest, SameSeedGivesTheSameValues) {
  const Fill fills[] = {
      [](Tensor& t, Generator& g) { return FillUniform(t, 0, 1, g); },
      [](Tensor& t, Generator& g) { return FillOrthogonal(t, 1, g); },
      [](Tensor& t, Generator& g) { return FillTruncatedNormal(t, {}, g); }};
  for (const Fill& fill : fills) {
    Generator first(9);
    Generator second(9);
    Tensor a = Tensor::Empty({3, 4});
    Tensor b = Tensor::Empty({3, 4});
    ASSERT_THAT(fill(a, first), IsOk());
    ASSERT_THAT(fill(b, second), IsOk());
    EXPECT_EQ(a.ToVector<float>(), b.ToVector<float>());
    // The state of the generator has changed.
    ASSERT_THAT(fill(b, first), IsOk());
    EXPECT_NE(a.ToVector<float>(), b.ToVector<float>());
  }
}

TEST(InitTest, InvalidTensorsAndOptionsAreRejected) {
  Generator generator(3);
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  Tensor whole = Tensor::Zeros({2, 2}, {.dtype = DType::kI64});
  Tensor vector = Tensor::Zeros({2});
  Tensor undefined;
  EXPECT_THAT(FillConstant(whole, 1), invalid);
  EXPECT_THAT(FillUniform(undefined, 0, 1, generator), invalid);
  EXPECT_THAT(FillNormal(whole, 0, 1, generator), invalid);
  EXPECT_THAT(FillTruncatedNormal(vector, {.stddev = 0}, generator), invalid);
  EXPECT_THAT(FillTruncatedNormal(vector, {.low = 1, .high = 0}, generator),
              invalid);
  EXPECT_THAT(FillTruncatedNormal(vector, {.mean = NAN}, generator), invalid);
  EXPECT_THAT(FillTruncatedNormal(vector, {.stddev = INFINITY}, generator),
              invalid);
  EXPECT_THAT(FillXavierUniform(vector, 1, generator), invalid);
  EXPECT_THAT(FillXavierNormal(vector, 1, generator), invalid);
  EXPECT_THAT(FillKaimingUniform(vector, {}, generator), invalid);
  EXPECT_THAT(FillKaimingNormal(whole, {}, generator), invalid);
  EXPECT_THAT(FillOrthogonal(vector, 1, generator), invalid);
}

}  // namespace
}  // namespace hawser::nn
