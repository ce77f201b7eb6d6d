#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using tensor::DType;
using tensor::Generator;

absl::Status CheckFloating(const char* what, const Tensor& tensor) {
  if (tensor.defined() && IsFloatingPoint(tensor.dtype())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": the tensor must be floating point, not ",
                   tensor.defined() ? tensor.ToString() : "undefined"));
}

// Overwrites `tensor`, which may be a parameter.
absl::Status Overwrite(Tensor& tensor, const Tensor& values) {
  const autograd::NoGradGuard no_grad;
  return tensor.CopyFrom(values);
}

struct Fans {
  double in;
  double out;
};

absl::StatusOr<Fans> FansOf(const char* what, const Tensor& tensor) {
  RETURN_IF_ERROR(CheckFloating(what, tensor));
  if (tensor.rank() < 2 || tensor.num_elements() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what,
                     ": a fan requires a tensor of rank 2 or more that is "
                     "not empty, not ",
                     tensor.ToString()));
  }
  const double count = static_cast<double>(tensor.num_elements());
  return Fans{count / static_cast<double>(tensor.dim(0)),
              count / static_cast<double>(tensor.dim(1))};
}

// Mills ratio of the standard normal distribution at z >= 0: the probability of
// values above z, divided by the density at z. Computed by the complementary
// error function where that is exact, otherwise by a continued fraction.
double MillsRatio(double z) {
  if (z < 10) {
    return std::sqrt(std::numbers::pi / 2) * std::exp(z * z / 2) *
           std::erfc(z / std::numbers::sqrt2);
  }
  double fraction = z;
  for (int k = 20; k > 0; --k) fraction = z + k / fraction;
  return 1 / fraction;
}

// The logarithm of P(values above a + d) / P(values above a), for a >= 0.
double LogTailRatio(double a, double d) {
  return -d * (a + d / 2) + std::log(MillsRatio(a + d) / MillsRatio(a));
}

// Solves LogTailRatio(a, d) = `log_ratio` for d; `log_ratio` is at most 0. Uses
// three steps of Halley's method, from the d at which the densities have that
// ratio. They are exact to rounding.
double TailDistance(double a, double log_ratio) {
  if (log_ratio == 0) return 0;
  double d = -2 * log_ratio / (a + std::sqrt(a * a - 2 * log_ratio));
  for (int i = 0; i < 3; ++i) {
    const double error = LogTailRatio(a, d) - log_ratio;
    const double mills = MillsRatio(a + d);
    d += 2 * error * mills / (2 - error * ((a + d) * mills - 1));
  }
  return d;
}

double NormalCdf(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// Quantile function of a normal variable restricted to an interval. The
// interval may be in a tail, where probabilities underflow a double.
class TruncatedNormal {
 public:
  explicit TruncatedNormal(const TruncatedNormalOptions& o)
      : options_(o),
        low_(std::min((o.low - o.mean) / o.stddev, kFarthest)),
        high_(std::max((o.high - o.mean) / o.stddev, -kFarthest)) {
    const double width = (o.high - o.low) / o.stddev;
    if (low_ > 0) tail_share_ = -std::expm1(LogTailRatio(low_, width));
    if (high_ < 0) tail_share_ = -std::expm1(LogTailRatio(-high_, width));
  }

  // The quantile at `u`, which is in [0, 1).
  double At(double u) const {
    const auto& [mean, stddev, low, high] = options_;
    const double log_rest = std::log1p(-u * tail_share_);
    if (low_ > 0) return low + stddev * TailDistance(low_, log_rest);
    if (high_ < 0) return high - stddev * TailDistance(-high_, log_rest);
    return mean + stddev * QuantileAroundMean(u);
  }

 private:
  // In standard deviations. Its square does not overflow a double.
  static constexpr double kFarthest = 1e100;

  double QuantileAroundMean(double u) const {
    const double within = NormalCdf(high_) - NormalCdf(low_);
    const double below = NormalCdf(low_) + within * u;
    if (below < 0.5) {
      const double least = std::numeric_limits<double>::min();
      return -TailDistance(0, std::log(2 * std::max(below, least)));
    }
    const double above = NormalCdf(-high_) + within * (1 - u);
    return TailDistance(0, std::min(std::log(2 * above), 0.0));
  }

  const TruncatedNormalOptions options_;
  const double low_;
  const double high_;
  double tail_share_ = 0;  // Of the tail that begins with the interval.
};

double Dot(const std::vector<double>& m, int64_t a, int64_t b, int64_t width) {
  double dot = 0;
  for (int64_t i = 0; i < width; ++i)
    dot += m[a * width + i] * m[b * width + i];
  return dot;
}

// Gram-Schmidt process on the rows of m [rows, width], rows <= width, in place.
// It runs twice, which makes it exact to rounding.
void Orthonormalize(std::vector<double>& m, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t done = 0; done < row; ++done) {
        const double dot = Dot(m, done, row, width);
        for (int64_t i = 0; i < width; ++i) {
          m[row * width + i] -= dot * m[done * width + i];
        }
      }
    }
    const double norm = std::sqrt(Dot(m, row, row, width));
    for (int64_t i = 0; i < width; ++i) m[row * width + i] /= norm;
  }
}

}  // namespace

absl::Status FillConstant(Tensor& tensor, double value) {
  RETURN_IF_ERROR(CheckFloating("FillConstant", tensor));
  return Overwrite(
      tensor, Tensor::Full(tensor.shape(), value, {.dtype = tensor.dtype()}));
}

absl::Status FillUniform(Tensor& tensor, double low, double high,
                         Generator& generator) {
  RETURN_IF_ERROR(CheckFloating("FillUniform", tensor));
  ASSIGN_OR_RETURN(const Tensor values,
                   tensor::Uniform(tensor.shape(), low, high, generator,
                                   {.dtype = tensor.dtype()}));
  return Overwrite(tensor, values);
}

absl::Status FillNormal(Tensor& tensor, double mean, double stddev,
                        Generator& generator) {
  RETURN_IF_ERROR(CheckFloating("FillNormal", tensor));
  ASSIGN_OR_RETURN(const Tensor values,
                   tensor::Normal(tensor.shape(), mean, stddev, generator,
                                  {.dtype = tensor.dtype()}));
  return Overwrite(tensor, values);
}

absl::Status FillTruncatedNormal(Tensor& tensor,
                                 const TruncatedNormalOptions& o,
                                 Generator& generator) {
  RETURN_IF_ERROR(CheckFloating("FillTruncatedNormal", tensor));
  if (!std::isfinite(o.mean) || !std::isfinite(o.stddev) || !(o.stddev > 0) ||
      !(o.low < o.high)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FillTruncatedNormal: mean and stddev must be finite, stddev above 0 "
        "and low below high, not ",
        o.mean, ", ", o.stddev, ", ", o.low, " and ", o.high));
  }
  const TruncatedNormal distribution(o);
  ASSIGN_OR_RETURN(
      Tensor values,
      tensor::Uniform(tensor.shape(), 0, 1, generator, {.dtype = DType::kF64}));
  double* value = values.data<double>();
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    value[i] = std::clamp(distribution.At(value[i]), o.low, o.high);
  }
  return Overwrite(tensor, values);
}

absl::Status FillXavierUniform(Tensor& tensor, double gain,
                               Generator& generator) {
  ASSIGN_OR_RETURN(const Fans fans, FansOf("FillXavierUniform", tensor));
  const double bound = gain * std::sqrt(6 / (fans.in + fans.out));
  return FillUniform(tensor, -bound, bound, generator);
}

absl::Status FillXavierNormal(Tensor& tensor, double gain,
                              Generator& generator) {
  ASSIGN_OR_RETURN(const Fans fans, FansOf("FillXavierNormal", tensor));
  return FillNormal(tensor, 0, gain * std::sqrt(2 / (fans.in + fans.out)),
                    generator);
}

absl::Status FillKaimingUniform(Tensor& tensor, const KaimingOptions& options,
                                Generator& generator) {
  ASSIGN_OR_RETURN(const Fans fans, FansOf("FillKaimingUniform", tensor));
  const double fan = options.fan == Fan::kIn ? fans.in : fans.out;
  const double bound = options.gain * std::sqrt(3 / fan);
  return FillUniform(tensor, -bound, bound, generator);
}

absl::Status FillKaimingNormal(Tensor& tensor, const KaimingOptions& options,
                               Generator& generator) {
  ASSIGN_OR_RETURN(const Fans fans, FansOf("FillKaimingNormal", tensor));
  const double fan = options.fan == Fan::kIn ? fans.in : fans.out;
  return FillNormal(tensor, 0, options.gain / std::sqrt(fan), generator);
}

absl::Status FillOrthogonal(Tensor& tensor, double gain, Generator& generator) {
  RETURN_IF_ERROR(FansOf("FillOrthogonal", tensor).status());
  const int64_t rows = tensor.dim(0);
  const int64_t columns = tensor.num_elements() / rows;
  const int64_t fewer = std::min(rows, columns);
  const int64_t width = std::max(rows, columns);
  ASSIGN_OR_RETURN(
      const Tensor normal,
      tensor::Normal({fewer, width}, 0, 1, generator, {.dtype = DType::kF64}));
  std::vector<double> m = normal.ToVector<double>();
  Orthonormalize(m, fewer, width);
  for (double& value : m) value *= gain;
  Tensor values = Tensor::FromVector(m, {fewer, width});
  if (fewer < rows) {
    ASSIGN_OR_RETURN(values, values.T());
  }
  ASSIGN_OR_RETURN(values, values.Reshape(tensor.shape()));
  return Overwrite(tensor, values);
}

}  // namespace hawser::nn
