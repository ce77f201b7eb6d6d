#include "proof/scale.h"

#include <cuda_runtime.h>

#include <span>

#include "proof/greeter.pb.h"
namespace {
__global__ void Scale(float* x, std::size_t n, float f) {
  std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
}  // namespace
std::string ScaleOnDevice(float* host, std::size_t count, float factor) {
  float* device = nullptr;
  if (auto e = cudaMalloc(&device, count * sizeof(float)); e != cudaSuccess)
    return cudaGetErrorString(e);
  cudaMemcpy(device, host, count * 4, cudaMemcpyHostToDevice);
  Scale<<<1, 256>>>(device, count, factor);
  cudaMemcpy(host, device, count * 4, cudaMemcpyDeviceToHost);
  hawser::proof::Hello h;
  h.set_name(cudaGetErrorString(cudaGetLastError()));
  return h.name();
}
