// Check with which raw operations refuse to lose a gradient.

#ifndef HAWSER_TENSOR_LOST_GRADIENT_H_
#define HAWSER_TENSOR_LOST_GRADIENT_H_

#include <string_view>

#include "absl/status/status.h"
#include "tensor/recording_mode.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// Whether a raw operation on `t` would drop a share of its gradient: `t`
// requires one, which is to say that it has an autograd_meta(), and this thread
// records. False for an undefined tensor.
inline bool WouldLoseGradient(const Tensor& t) {
  return t.defined() && t.autograd_meta() != nullptr &&
         ThreadRecordingMode() == RecordingMode::kRecord;
}

// kFailedPrecondition: `operation` was given an operand of which `what` tells
// its name, dtype and shape. `recorded` is the operation to use instead, or
// empty if there is none.
absl::Status LostGradientError(std::string_view operation,
                               std::string_view what,
                               std::string_view recorded);

// For a method of `t`: LostGradientError() if the gradient would be lost.
inline absl::Status CheckKeepsGradient(const Tensor& t,
                                       std::string_view operation,
                                       std::string_view recorded) {
  if (WouldLoseGradient(t)) [[unlikely]] {
    return LostGradientError(operation, t.ToString(), recorded);
  }
  return absl::OkStatus();
}

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_LOST_GRADIENT_H_
