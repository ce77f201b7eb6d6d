#ifndef HAWSER_OPTIM_GRAD_CLIP_H_
#define HAWSER_OPTIM_GRAD_CLIP_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::optim {

// The accumulated gradients of `parameters`, in their order; undefined for
// parameters without one. They share memory with the original gradients.
std::vector<Tensor> Gradients(std::span<const Tensor> parameters);

struct ClipNormOptions {
  double max_norm = 1;  // At least 0.
  double p = 2;         // Order of the norm, above 0; infinity: the maximum.
  // True: an infinite or NaN norm gives kFailedPrecondition. False: the
  // gradients are scaled anyway, to 0 or NaN.
  bool fail_if_nonfinite = true;
};

// Scales all `gradients` in place by max_norm / (norm + 1e-6) if this is below
// 1. The norm is that of all their elements together. Undefined gradients are
// ignored. Returns the norm before scaling.
//
// kInvalidArgument     max_norm or p is out of range, or a gradient is not
//                      floating point.
// kFailedPrecondition  the norm is not finite. The message names the first
//                      gradient that is not finite. Nothing was changed.
absl::StatusOr<double> ClipNorm(std::span<const Tensor> gradients,
                                const ClipNormOptions& options);

// Clamps every element to [-limit, limit], in place. NaN stays NaN.
//
// kInvalidArgument: `limit` is negative or NaN.
absl::Status ClipValue(std::span<const Tensor> gradients, double limit);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_GRAD_CLIP_H_
