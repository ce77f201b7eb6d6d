#include "bazel/cuda/test/scale.h"

namespace hawser::build_test {
namespace {

__global__ void ScaleKernel(float* values, std::size_t count, float factor) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

}  // namespace

void Scale(float* values, std::size_t count, float factor) {
  constexpr unsigned kThreads = 256;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  ScaleKernel<<<blocks, kThreads>>>(values, count, factor);
}

}  // namespace hawser::build_test
