#include "tensor/ops/random.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

absl::Status BadArgument(const char* name, std::string_view what, double a,
                         double b) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", absl::string_view(what.data(), what.size()),
                   ": ", a, ", ", b));
}

absl::Status CheckFloatingOptions(const char* name,
                                  const TensorOptions& options) {
  if (IsFloatingPoint(options.dtype)) return absl::OkStatus();
  const std::string_view dtype = DTypeName(options.dtype);
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": needs a floating-point dtype, not ",
                   absl::string_view(dtype.data(), dtype.size())));
}

absl::StatusOr<Tensor> RunRandom(RandomKind kind, const Shape& shape, double a,
                                 double b, Generator& generator,
                                 const TensorOptions& options) {
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(options.device));
  ASSIGN_OR_RETURN(Tensor out, Tensor::TryEmpty(shape, options));
  const uint64_t offset =
      generator.Take(static_cast<uint64_t>(out.num_elements()));
  RETURN_IF_ERROR(backend->Random(kind, generator.seed(), offset, a, b, out));
  return out;
}

}  // namespace

absl::StatusOr<Tensor> Uniform(const Shape& shape, double low, double high,
                               Generator& generator,
                               const TensorOptions& options) {
  RETURN_IF_ERROR(CheckFloatingOptions("Uniform", options));
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) {
    return BadArgument("Uniform", "bounds must be finite and in order", low,
                       high);
  }
  return RunRandom(RandomKind::kUniform, shape, low, high, generator, options);
}

absl::StatusOr<Tensor> Normal(const Shape& shape, double mean, double stddev,
                              Generator& generator,
                              const TensorOptions& options) {
  RETURN_IF_ERROR(CheckFloatingOptions("Normal", options));
  if (!std::isfinite(mean) || !std::isfinite(stddev) || stddev < 0) {
    return BadArgument("Normal", "mean and deviation out of range", mean,
                       stddev);
  }
  return RunRandom(RandomKind::kNormal, shape, mean, stddev, generator,
                   options);
}

absl::StatusOr<Tensor> Bernoulli(const Shape& shape, double probability,
                                 Generator& generator,
                                 const TensorOptions& options) {
  if (!(probability >= 0 && probability <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Bernoulli: ", probability, " is no probability"));
  }
  return RunRandom(RandomKind::kBernoulli, shape, probability, 0, generator,
                   options);
}

absl::StatusOr<Tensor> RandPerm(int64_t n, Generator& generator) {
  if (n < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("RandPerm: ", n, " elements"));
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::TryEmpty({n}, {DType::kI64}));
  // Fisher and Yates. A uniform double has 53 bits, so that the bias towards
  // some elements is below n * 2^-53.
  ASSIGN_OR_RETURN(const Tensor uniform,
                   Uniform({n}, 0, 1, generator, {DType::kF64}));
  int64_t* const p = out.data<int64_t>();
  const double* const u = uniform.data<double>();
  for (int64_t i = 0; i < n; ++i) {
    const auto j = static_cast<int64_t>(u[i] * static_cast<double>(i + 1));
    p[i] = i;
    std::swap(p[i], p[j]);
  }
  return out;
}

}  // namespace hawser::tensor
