#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
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

struct Fans {
  double in;
  double out;
};

absl::StatusOr<Fans> FansOf(const char* what, const Tensor& tensor) {
  RETURN_IF_ERROR(CheckFloating(what, tensor));
  if (tensor.rank() < 2 || tensor.num_elements() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what,
                     ": a fan needs a tensor of rank 2 or more that is "
                     "not empty, not ",
                     tensor.ToString()));
  }
  const double count = static_cast<double>(tensor.num_elements());
  return Fans{count / static_cast<double>(tensor.dim(0)),
              count / static_cast<double>(tensor.dim(1))};
}

// The inverse of std::erf in (-1, 1): the single-precision approximation of
// Giles, "Approximating the erfinv function" (2010), and two Newton steps.
double InverseErf(double x) {
  double w = -std::log((1 - x) * (1 + x));
  double p;
  if (w < 5) {
    w -= 2.5;
    p = 2.81022636e-08;
    for (const double c :
         {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
          -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}) {
      p = c + p * w;
    }
  } else {
    w = std::sqrt(w) - 3;
    p = -0.000200214257;
    for (const double c :
         {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
          -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}) {
      p = c + p * w;
    }
  }
  double y = p * x;
  for (int i = 0; i < 2; ++i) {
    y -= (std::erf(y) - x) / (2 * std::numbers::inv_sqrtpi * std::exp(-y * y));
  }
  return y;
}

double NormalCdf(double z) {
  return (1 + std::erf(z / std::numbers::sqrt2)) / 2;
}

double Dot(const std::vector<double>& m, int64_t a, int64_t b, int64_t width) {
  double dot = 0;
  for (int64_t i = 0; i < width; ++i)
    dot += m[a * width + i] * m[b * width + i];
  return dot;
}

// Gram and Schmidt on the rows of m [rows, width], rows <= width, in place.
// Twice, which makes it exact to rounding.
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
  return tensor.CopyFrom(
      Tensor::Full(tensor.shape(), value, {.dtype = tensor.dtype()}));
}

absl::Status FillUniform(Tensor& tensor, double low, double high,
                         Generator& generator) {
  RETURN_IF_ERROR(CheckFloating("FillUniform", tensor));
  ASSIGN_OR_RETURN(const Tensor values,
                   tensor::Uniform(tensor.shape(), low, high, generator,
                                   {.dtype = tensor.dtype()}));
  return tensor.CopyFrom(values);
}

absl::Status FillNormal(Tensor& tensor, double mean, double stddev,
                        Generator& generator) {
  RETURN_IF_ERROR(CheckFloating("FillNormal", tensor));
  ASSIGN_OR_RETURN(const Tensor values,
                   tensor::Normal(tensor.shape(), mean, stddev, generator,
                                  {.dtype = tensor.dtype()}));
  return tensor.CopyFrom(values);
}

absl::Status FillTruncatedNormal(Tensor& tensor,
                                 const TruncatedNormalOptions& o,
                                 Generator& generator) {
  RETURN_IF_ERROR(CheckFloating("FillTruncatedNormal", tensor));
  if (!(o.stddev > 0) || !(o.low < o.high)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FillTruncatedNormal: stddev must be above 0 and low below high, not ",
        o.stddev, ", ", o.low, " and ", o.high));
  }
  // Uniform between the two quantiles, then back through the quantile function.
  const double below = NormalCdf((o.low - o.mean) / o.stddev);
  const double above = NormalCdf((o.high - o.mean) / o.stddev);
  ASSIGN_OR_RETURN(
      Tensor values,
      tensor::Uniform(tensor.shape(), 0, 1, generator, {.dtype = DType::kF64}));
  double* value = values.data<double>();
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const double quantile = below + (above - below) * value[i];
    const double z = std::numbers::sqrt2 * InverseErf(2 * quantile - 1);
    value[i] = std::clamp(o.mean + o.stddev * z, o.low, o.high);
  }
  return tensor.CopyFrom(values);
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
  return tensor.CopyFrom(values);
}

}  // namespace hawser::nn
