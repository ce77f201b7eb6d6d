// Elementwise functions of dense floats, vectorised for the CPU the program
// runs on. Outputs may be the inputs.
#ifndef HAWSER_TENSOR_CPU_VECTOR_ELEMENTWISE_H_
#define HAWSER_TENSOR_CPU_VECTOR_ELEMENTWISE_H_

#include <cstdint>

#include "tensor/kernel_types.h"

namespace hawser::tensor::cpu {

void Unary(UnaryOp op, const float* in, float* out, int64_t n);
void Binary(BinaryOp op, const float* a, const float* b, float* out, int64_t n);
void BinaryScalar(BinaryOp op, const float* a, float b, float* out, int64_t n);
// out += alpha * b
void AddScaled(const float* b, float alpha, float* out, int64_t n);
// rows [m, n] += bias [n], then negative elements become 0 if `relu`.
void AddBias(const float* bias, bool relu, float* rows, int64_t m, int64_t n);
// Negative elements become 0.
void ReluInPlace(uint16_t* bf16_bits, int64_t n);
// dz[m, n] = dy where y > 0, else 0; db[n] = the sum of dz over rows.
void ReluBiasGrad(const float* y, const float* dy, float* dz, float* db,
                  int64_t m, int64_t n);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_CPU_VECTOR_ELEMENTWISE_H_
