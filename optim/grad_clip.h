#ifndef HAWSER_OPTIM_GRAD_CLIP_H_
#define HAWSER_OPTIM_GRAD_CLIP_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::optim {

// The gradients accumulated at `parameters`, in their order; undefined where
// there is none. They share memory with the parameters' own.
std::vector<Tensor> Gradients(std::span<const Tensor> parameters);

struct ClipNormOptions {
  double max_norm = 1;  // At least 0.
  double p = 2;         // Of the norm: above 0; infinity for the largest one.
  // Whether to give kFailedPrecondition where the norm is infinite or NaN. If
  // not, the gradients are scaled as they are: to 0 or NaN.
  bool fail_if_nonfinite = true;
};

// Scales all `gradients` in place by max_norm / (norm + 1e-6), if that is below
// 1, `norm` being that of all their elements together. Undefined ones do not
// count. Returns the norm before.
//
// kInvalidArgument     max_norm or p out of range, or a gradient is not
//                      floating point.
// kFailedPrecondition  The norm is not finite; the message names the first
//                      gradient to blame. Nothing was changed.
absl::StatusOr<double> ClipNorm(std::span<const Tensor> gradients,
                                const ClipNormOptions& options);

// Moves every element into [-limit, limit], in place. NaN stays NaN.
//
// kInvalidArgument: `limit` is not at least 0.
absl::Status ClipValue(std::span<const Tensor> gradients, double limit);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_GRAD_CLIP_H_
