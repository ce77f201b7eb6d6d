#include "proof/scale.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include "gtest/gtest.h"
TEST(Scale, Doubles) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_GT(cublasGetCudartVersion(), 12000u);
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) GTEST_SKIP() << "no GPU";
  float x[2] = {1, 2};
  EXPECT_EQ(ScaleOnDevice(x, 2, 2), "no error");
  EXPECT_EQ(x[1], 4);
}
