// The parts of a linear layer that are not products, in one pass each over its
// rows, vectorised for the CPU the program runs on: bias, ReLU, their gradients
// and column sums. bf16 is summed in f32.
//
// Matrices are [m, n], row-major, dense. A column's sum is rounded in f32 after
// every few rows: give it some hundred rows at a time.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_H_

#include <cstdint>

#include "tensor/half.h"

namespace hawser::tensor::cpu {

// rows += bias [n], then what is not above 0, but NaN, becomes 0.
void AddBiasRelu(const float* bias, float* rows, int64_t m, int64_t n);
// What is not above 0, but NaN, becomes 0.
void ReluInPlace(BFloat16* x, int64_t n);

// dz = dy, but 0 where y is not above 0 and not NaN; db[n] = the column sums of
// dz. `dz` may be `dy`.
void ReluBiasGrad(const float* y, const float* dy, float* dz, float* db,
                  int64_t m, int64_t n);
void ReluBiasGrad(const BFloat16* y, const BFloat16* dy, BFloat16* dz,
                  float* db, int64_t m, int64_t n);

void ColumnSums(const float* x, float* sums, int64_t m, int64_t n);
void ColumnSums(const BFloat16* x, float* sums, int64_t m, int64_t n);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_H_
