#ifndef HAWSER_AUTOGRAD_BACKWARD_H_
#define HAWSER_AUTOGRAD_BACKWARD_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

struct BackwardOptions {
  // Keeps saved tensors, so that the graph can be run again.
  bool retain_graph = false;
};

// Computes the gradients of `root` with respect to all leaves from which it was
// recorded, and adds them to Grad(leaf). Runs in the calling thread. After an
// error some gradients may have been added.
//
//   kInvalidArgument     `root` is undefined or does not require a gradient; it
//                        does not have one element and its gradient is not
//                        given; or the given gradient differs from it in shape
//                        or dtype.
//   kFailedPrecondition  a saved tensor was written in place or was released
//                        by an earlier pass; the message names the operation.
// Errors of operations and hooks are prefixed with the name of the operation.
absl::Status Backward(const Tensor& root, BackwardOptions options = {});

// The same for several roots. `gradients` is empty or has one tensor for each
// root. An undefined one stands for a gradient of one and needs a root of one
// element.
absl::Status Backward(std::span<const Tensor> roots,
                      std::span<const Tensor> gradients,
                      BackwardOptions options = {});

struct GradOptions {
  // One for each output as for Backward, or empty.
  std::vector<Tensor> output_gradients;
  bool retain_graph = false;
  // Returns an undefined tensor for an input on which the outputs do not
  // depend, instead of kInvalidArgument.
  bool allow_unused = false;
};

// Returns the gradients of `outputs` with respect to `inputs`, leaves or
// results, in order. Grad(leaf) does not change. Runs only nodes that lead to
// an input. Errors as of Backward; also kInvalidArgument if an input does not
// require a gradient.
absl::StatusOr<std::vector<Tensor>> Grad(std::span<const Tensor> outputs,
                                         std::span<const Tensor> inputs,
                                         GradOptions options = {});

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_BACKWARD_H_
