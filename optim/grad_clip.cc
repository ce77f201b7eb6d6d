#include "optim/grad_clip.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "tensor/dtype.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/in_place.h"
#include "tensor/ops/reduce.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

// The norm of each gradient, computed in f32 for 16-bit dtypes; 0 for undefined
// gradients.
absl::StatusOr<std::vector<double>> Norms(std::span<const Tensor> gradients,
                                          double p) {
  std::vector<double> norms;
  for (const Tensor& gradient : gradients) {
    norms.push_back(0);
    if (!gradient.defined()) continue;
    ASSIGN_OR_RETURN(const Tensor wide,
                     gradient.To(SumDType(gradient.dtype())));
    ASSIGN_OR_RETURN(const Tensor norm, tensor::Norm(wide, p));
    ASSIGN_OR_RETURN(norms.back(), norm.item<double>());
  }
  return norms;
}

double JointNorm(const std::vector<double>& norms, double p) {
  double joint = 0;
  if (std::isinf(p)) {
    for (const double norm : norms) {
      // A NaN is kept.
      if (!(norm <= joint) && !std::isnan(joint)) joint = norm;
    }
    return joint;
  }
  for (const double norm : norms) joint += std::pow(norm, p);
  return std::pow(joint, 1 / p);
}

}  // namespace

std::vector<Tensor> Gradients(std::span<const Tensor> parameters) {
  std::vector<Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const Tensor& parameter : parameters) {
    gradients.push_back(autograd::Grad(parameter));
  }
  return gradients;
}

absl::StatusOr<double> ClipNorm(std::span<const Tensor> gradients,
                                const ClipNormOptions& options) {
  if (!(options.max_norm >= 0) || !(options.p > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ClipNorm: max_norm must be at least 0 and p above 0, not ",
        options.max_norm, " and ", options.p));
  }
  ASSIGN_OR_RETURN(const std::vector<double> norms,
                   Norms(gradients, options.p));
  const double norm = JointNorm(norms, options.p);
  if (options.fail_if_nonfinite && !std::isfinite(norm)) {
    const auto culprit =
        std::find_if(norms.begin(), norms.end(),
                     [](double one) { return !std::isfinite(one); });
    const std::string where =
        culprit == norms.end()
            ? "together"
            : absl::StrCat("of gradient ", culprit - norms.begin());
    return absl::FailedPreconditionError(
        absl::StrCat("ClipNorm: the norm ", where, " is ", norm,
                     "; skip this step or lower the learning rate"));
  }
  const double factor = options.max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;
  for (Tensor gradient : gradients) {
    if (!gradient.defined()) continue;
    RETURN_IF_ERROR(tensor::MulScalarInPlace(gradient, factor));
  }
  return norm;
}

absl::Status ClipValue(std::span<const Tensor> gradients, double limit) {
  if (!(limit >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ClipValue: the limit must be at least 0, not ", limit));
  }
  for (Tensor gradient : gradients) {
    if (!gradient.defined()) continue;
    const tensor::TensorOptions like{gradient.dtype(), gradient.device()};
    ASSIGN_OR_RETURN(const Tensor below,
                     tensor::Minimum(gradient, Tensor::Scalar(limit, like)));
    ASSIGN_OR_RETURN(const Tensor within,
                     tensor::Maximum(below, Tensor::Scalar(-limit, like)));
    RETURN_IF_ERROR(tensor::CopyInto(gradient, within));
  }
  return absl::OkStatus();
}

}  // namespace hawser::optim
