#include "tensor/ops/gather.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/dtype.h"
#include "tensor/ops/embedding.h"
#include "tensor/ops/join.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using CudaGatherTest = CudaTest;

constexpr DType kIdDTypes[] = {DType::kI64, DType::kI32};

// Dtypes with atomic addition.
constexpr DType kAddable[] = {DType::kF32,  DType::kF64, DType::kF16,
                              DType::kBF16, DType::kI64, DType::kI32};

TEST_F(CudaGatherTest, IndexSelect) {
  for (const DType dtype : kAllDTypes) {
    const Tensor a = TestTensor({4, 5, 3}, dtype, 1, 0, 9);
    for (int dim = 0; dim < 3; ++dim) {
      for (const int64_t n : {0, 1, 6}) {
        for (const DType id_dtype : kIdDTypes) {
          const Tensor index =
              TestTensor({n}, id_dtype, 2, 0, a.shape()[dim] - 1);
          ExpectSame({a, index}, [&](const auto& in) {
            return IndexSelect(in[0], dim, in[1]);
          });
        }
      }
    }
  }
}

TEST_F(CudaGatherTest, IndexAdd) {
  for (const DType dtype : kAddable) {
    const Tensor a = TestTensor({4, 5, 3}, dtype, 1, 0, 2);
    for (int dim = 0; dim < 3; ++dim) {
      for (const int64_t n : {0, 1, 9}) {
        Shape shape = a.shape();
        shape[dim] = n;
        const Tensor src = TestTensor(shape, dtype, 3, 0, 2);
        const Tensor index =
            TestTensor({n}, DType::kI32, 2, 0, a.shape()[dim] - 1);
        ExpectSame(
            {a, index, src},
            [&](const auto& in) { return IndexAdd(in[0], dim, in[1], in[2]); },
            IsFloatingPoint(dtype) ? 8 * Tolerance(dtype) : 0);
      }
    }
  }
}

TEST_F(CudaGatherTest, GatherAndScatterAdd) {
  for (const DType dtype : kAddable) {
    const Tensor a = TestTensor({4, 5}, dtype, 1, 0, 2);
    for (const int dim : {0, 1}) {
      for (const Shape& shape :
           std::vector<Shape>{{4, 5}, {2, 3}, {0, 5}, {1, 1}}) {
        const Tensor index =
            TestTensor(shape, DType::kI64, 2, 0, a.shape()[dim] - 1);
        const Tensor src = TestTensor({4, 6}, dtype, 3, 0, 2);
        ExpectSame({a, index},
                   [&](const auto& in) { return Gather(in[0], dim, in[1]); });
        ExpectSame(
            {a, index, src},
            [&](const auto& in) {
              return ScatterAdd(in[0], dim, in[1], in[2]);
            },
            IsFloatingPoint(dtype) ? 8 * Tolerance(dtype) : 0);
      }
    }
  }
}

TEST_F(CudaGatherTest, SumsOfManySmallAddendsDoNotStall) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor zero = Tensor::Zeros({1}, {dtype});
    const Tensor index = Tensor::Zeros({4096}, {DType::kI64});
    const Tensor ones = Tensor::Ones({4096}, {dtype});
    ExpectSame({zero, index, ones},
               [](const auto& in) { return IndexAdd(in[0], 0, in[1], in[2]); });
    ExpectSame({zero, index, ones}, [](const auto& in) {
      return ScatterAdd(in[0], 0, in[1], in[2]);
    });
    ExpectSame({*ones.View({4096, 1}), index},
               [](const auto& in) { return EmbeddingGrad(in[0], in[1], 1); });
  }
}

TEST_F(CudaGatherTest, BadIndexIsNamed) {
  const Tensor a = TestTensor({3, 4});
  for (const int64_t bad : {int64_t{-1}, int64_t{3}, INT64_MIN, INT64_MAX}) {
    const Tensor index = Tensor::FromVector<int64_t>({0, bad, -9}, {3});
    const Tensor matrix = *index.View({3, 1});
    ExpectSame({a, index},
               [](const auto& in) { return IndexSelect(in[0], 0, in[1]); });
    ExpectSame({a, index},
               [](const auto& in) { return IndexAdd(in[0], 0, in[1], in[0]); });
    ExpectSame({a, matrix},
               [](const auto& in) { return Gather(in[0], 0, in[1]); });
    ExpectSame({a, matrix}, [](const auto& in) {
      return ScatterAdd(in[0], 0, in[1], in[0]);
    });
  }
}

TEST_F(CudaGatherTest, Embeddings) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor weight = TestTensor({7, 5}, dtype);
    for (const Shape& shape : std::vector<Shape>{{}, {0}, {4}, {2, 3}}) {
      const Tensor ids = TestTensor(shape, DType::kI64, 2, 0, 6);
      ExpectSame({weight, ids},
                 [](const auto& in) { return Embedding(in[0], in[1]); });
      const Tensor dout = TestTensor(Embedding(weight, ids)->shape(), dtype, 3);
      ExpectSame(
          {dout, ids},
          [](const auto& in) { return EmbeddingGrad(in[0], in[1], 7); },
          8 * Tolerance(dtype));
    }
  }
}

// Concat, Stack and Split consist of copies.
TEST_F(CudaGatherTest, Joins) {
  const Tensor a = TestTensor({2, 3}), b = TestTensor({2, 3}, DType::kF32, 2);
  for (const int dim : {0, 1}) {
    ExpectSame({a, b}, [&](const auto& in) { return Concat(in, dim); });
    ExpectSame({a, b}, [&](const auto& in) { return Stack(in, dim); });
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
