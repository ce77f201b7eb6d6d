#ifndef HAWSER_AUTOGRAD_BACKWARD_H_
#define HAWSER_AUTOGRAD_BACKWARD_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

struct BackwardOptions {
  // Keep saved tensors, so that the graph can be run again.
  bool retain_graph = false;
};

// Computes the gradient of `root` with respect to every leaf it was recorded
// from and adds it to Grad(leaf). Runs in the calling thread, which returns
// when all is done. Gradients delivered before an error stay.
//
//   kInvalidArgument     `root` is undefined, requires no gradient, or has more
//                        than one element and no gradient was given; or a given
//                        gradient differs from its root in shape or dtype.
//   kFailedPrecondition  a saved tensor was written in place or was released
//                        by an earlier pass; the message names the operation.
// Errors of operations and hooks come back with the operation's name in front.
absl::Status Backward(const Tensor& root, BackwardOptions options = {});

// The same from several roots at once. `gradients` is empty, or holds one for
// each root; an undefined one stands for one in each element and needs a root
// of one element.
absl::Status Backward(std::span<const Tensor> roots,
                      std::span<const Tensor> gradients,
                      BackwardOptions options = {});

struct GradOptions {
  // One for each output as for Backward, or empty.
  std::vector<Tensor> output_gradients;
  bool retain_graph = false;
  // Give an undefined tensor for an input that no output depends on, instead
  // of kInvalidArgument.
  bool allow_unused = false;
};

// The gradients of `outputs` with respect to `inputs`, leaves or results, in
// order. Grad(leaf) stays as it is; nodes that lead to no input do not run.
// Errors as of Backward; kInvalidArgument too for an input that requires no
// gradient.
absl::StatusOr<std::vector<Tensor>> Grad(std::span<const Tensor> outputs,
                                         std::span<const Tensor> inputs,
                                         GradOptions options = {});

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_BACKWARD_H_
