#ifndef HAWSER_DIST_AUTOGRAD_GRADIENTS_H_
#define HAWSER_DIST_AUTOGRAD_GRADIENTS_H_

#include <vector>

#include "tensor/tensor.h"

namespace hawser::dist_autograd {

// The gradient of one leaf in one context.
struct Gradient {
  Tensor variable;
  // Later passes of the context add to the same memory: Clone to keep it.
  Tensor gradient;
};

// Gradients in the order in which the leaves got their first one.
using Gradients = std::vector<Gradient>;

// Returns the gradient of `variable`; undefined if it has none.
inline Tensor FindGradient(const Gradients& gradients, const Tensor& variable) {
  for (const Gradient& entry : gradients) {
    if (entry.variable.is_same(variable)) return entry.gradient;
  }
  return Tensor();
}

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_GRADIENTS_H_
