// Tensors that a fuzz target makes from its input.

#ifndef HAWSER_BAZEL_FUZZ_MADE_UP_TENSORS_H_
#define HAWSER_BAZEL_FUZZ_MADE_UP_TENSORS_H_

#include <vector>

#include "bazel/fuzz/fuzz_input.h"
#include "tensor/tensor.h"

namespace hawser::fuzz {

// Up to three small tensors, mostly of shape [2] and float32.
inline std::vector<tensor::Tensor> MakeTensors(FuzzInput& input) {
  using tensor::DType;
  using tensor::Tensor;
  std::vector<Tensor> tensors(input.Below(4));
  for (Tensor& made : tensors) {
    switch (input.Below(8)) {
      case 4:
        made = Tensor::Ones({2}, {.dtype = DType::kF64});
        break;
      case 5:
        made = Tensor::Ones({2}, {.dtype = DType::kI64});
        break;
      case 6:
        made = Tensor::Ones({});
        break;
      case 7:
        made = Tensor::Zeros({static_cast<int64_t>(input.Below(4)),
                              static_cast<int64_t>(input.Below(4))});
        break;
      default:
        made = Tensor::Full({2}, input.Byte());
        break;
    }
  }
  return tensors;
}

}  // namespace hawser::fuzz

#endif  // HAWSER_BAZEL_FUZZ_MADE_UP_TENSORS_H_
