// The parts of a linear layer other than matrix products: bias, ReLU, their
// gradients and column sums. Each makes one pass over the rows, vectorised for
// the CPU that the program runs on. bf16 is summed in f32.
//
// Matrices are [m, n], row-major, dense. A column's sum is rounded in f32 after
// every few rows, so pass at most a few hundred rows per call.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_H_

#include <cstdint>

#include "tensor/half.h"

namespace hawser::tensor::cpu {

// rows += bias [n], then ReLU: elements that are neither above 0 nor NaN become
// 0.
void AddBiasRelu(const float* bias, float* rows, int64_t m, int64_t n);
// ReLU: elements that are neither above 0 nor NaN become 0.
void ReluInPlace(BFloat16* x, int64_t n);

// dz = dy where y is above 0 or NaN, else 0; db[n] = the column sums of dz.
// `dz` may be `dy`.
void ReluBiasGrad(const float* y, const float* dy, float* dz, float* db,
                  int64_t m, int64_t n);
void ReluBiasGrad(const BFloat16* y, const BFloat16* dy, BFloat16* dz,
                  float* db, int64_t m, int64_t n);

void ColumnSums(const float* x, float* sums, int64_t m, int64_t n);
void ColumnSums(const BFloat16* x, float* sums, int64_t m, int64_t n);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_BIAS_H_
