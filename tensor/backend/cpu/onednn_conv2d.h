// Convolutions by oneDNN, in the layouts that it prefers: inputs and outputs
// are reordered. Primitives are created once per shape and thread, and cached.
#ifndef HAWSER_TENSOR_BACKEND_CPU_ONEDNN_CONV2D_H_
#define HAWSER_TENSOR_BACKEND_CPU_ONEDNN_CONV2D_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/backend/cpu/conv2d_sizes.h"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {

enum class ConvPass : uint8_t {
  kForward,     // inputs x, weight; output y
  kInputGrad,   // inputs dy, weight; output dx
  kWeightGrad,  // inputs dy, x; output dweight
};

// Tensors are dense, not empty, and of `dtype`, which is kF32 or kBF16. `bias`
// [o] may be null, and must be null except for kForward. Returns false, without
// doing anything, if oneDNN does not support this on this machine;
// kResourceExhausted if out of scratch memory.
absl::StatusOr<bool> ConvolveOneDnn(ConvPass pass, DType dtype,
                                    const Conv2dSizes& sizes,
                                    const void* input0, const void* input1,
                                    const void* bias, void* output);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_ONEDNN_CONV2D_H_
