// Copying and converting elements between layouts, in host memory.

#ifndef HAWSER_TENSOR_INTERNAL_STRIDED_COPY_H_
#define HAWSER_TENSOR_INTERNAL_STRIDED_COPY_H_

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::tensor::internal {

// Where elements of one type lie.
struct ConstStridedElements {
  const void* data;
  DType dtype;
  const Strides& strides;
};
struct StridedElements {
  void* data;
  DType dtype;
  const Strides& strides;
};

// Writes each element of `source` to the same index of `dest`, converted as
// Tensor::CopyFrom() says. The memory of the two does not overlap, nor do
// elements of `dest`.
void StridedCopy(const Shape& shape, StridedElements dest,
                 ConstStridedElements source);

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_INTERNAL_STRIDED_COPY_H_
