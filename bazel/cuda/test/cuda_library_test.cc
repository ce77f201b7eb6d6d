#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <array>

#include "bazel/cuda/test/scale.h"
#include "gtest/gtest.h"

namespace hawser::build_test {
namespace {

TEST(CudaLibraryTest, LibrariesOfTheToolkitAreLinked) {
  int nccl_version = 0;
  EXPECT_EQ(ncclGetVersion(&nccl_version), ncclSuccess);
  EXPECT_GT(cublasGetCudartVersion(), 0U);
}

TEST(CudaLibraryTest, KernelRunsOnTheDevice) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    GTEST_SKIP() << "no GPU";
  }
  std::array<float, 3> values = {1, 2, 3};
  constexpr size_t kBytes = sizeof(values);
  float* on_device = nullptr;
  ASSERT_EQ(cudaMalloc(&on_device, kBytes), cudaSuccess);
  ASSERT_EQ(
      cudaMemcpy(on_device, values.data(), kBytes, cudaMemcpyHostToDevice),
      cudaSuccess);
  Scale(on_device, values.size(), 2);
  ASSERT_EQ(
      cudaMemcpy(values.data(), on_device, kBytes, cudaMemcpyDeviceToHost),
      cudaSuccess);
  EXPECT_EQ(values, (std::array<float, 3>{2, 4, 6}));
  EXPECT_EQ(cudaFree(on_device), cudaSuccess);
}

}  // namespace
}  // namespace hawser::build_test
