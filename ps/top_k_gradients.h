// Gradients of which only the largest elements are sent.

#ifndef HAWSER_PS_TOP_K_GRADIENTS_H_
#define HAWSER_PS_TOP_K_GRADIENTS_H_

#include <cstdint>

#include "tensor/tensor.h"

namespace hawser::ps {

// Chooses the largest elements of the gradients of one parameter, step by step.
// The others are kept and added to the next gradient, so that each element is
// sent in the end (error feedback: Stich, Cordonnier and Jaggi, "Sparsified SGD
// with Memory", NeurIPS 2018).
//
// Thread-compatible.
class TopKGradients {
 public:
  // `density` is the share of the elements that a step sends, in (0, 1]; at
  // least one element.
  explicit TopKGradients(double density) : density_(density) {}

  // Elements that Choose chooses of a gradient with `count`.
  int64_t NumChosen(int64_t count) const;

  // Returns a tensor of the gradient's shape with the chosen elements, each the
  // sum of those kept and this one; the others are 0. Of equal magnitudes the
  // first ones are chosen. An element that is NaN is chosen first.
  //
  //   gradient  f32 on the CPU, contiguous; of the same shape in each call.
  Tensor Choose(const Tensor& gradient);

 private:
  double density_;
  // The elements that were not sent. Undefined before the first call.
  Tensor kept_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TOP_K_GRADIENTS_H_
