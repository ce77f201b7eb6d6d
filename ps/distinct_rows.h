// Rows of the distinct keys of a list that repeats keys.

#ifndef HAWSER_PS_DISTINCT_ROWS_H_
#define HAWSER_PS_DISTINCT_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ps/ordered_keys.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// Whether repeated keys are estimated to be a tenth of `keys` or more, from the
// repeats in a sample.
bool HasManyRepeats(std::span<const uint64_t> keys);

// Returns the row of each key of the list, with elements in `shape`.
//
//   parts  f32[n_i, width], in sum the rows of the distinct keys.
Tensor ExpandRows(const OrderedKeys& ordered, const std::vector<Tensor>& parts,
                  const tensor::Shape& shape, int64_t width);

// Returns the sum of the gradients of each distinct key, added in the order of
// the list: f32[distinct keys, width].
//
//   gradients  f32, of keys * width elements, contiguous.
Tensor CombineGradients(const OrderedKeys& ordered, const Tensor& gradients,
                        int64_t width);

// Returns the sum of `parts`, f32 of one shape, contiguous; at least one. It
// may have the memory of the first.
Tensor AddParts(std::vector<Tensor> parts);

}  // namespace hawser::ps

#endif  // HAWSER_PS_DISTINCT_ROWS_H_
