// Elementwise functions of dense floats, and AddScaled for bf16, vectorised for
// the CPU that the program runs on. Outputs may be the inputs.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_H_

#include <cstdint>

#include "tensor/backend/kernel_types.h"
#include "tensor/half.h"

namespace hawser::tensor::cpu {

void Unary(UnaryOp op, const float* in, float* out, int64_t n);
void Binary(BinaryOp op, const float* a, const float* b, float* out, int64_t n);
void BinaryScalar(BinaryOp op, const float* a, float b, float* out, int64_t n);
// out = a + alpha * b, rounded once.
void AddScaled(const float* a, const float* b, float alpha, float* out,
               int64_t n);
// The same, rounded to nearest even; computed in f32.
void AddScaled(const BFloat16* a, const BFloat16* b, float alpha, BFloat16* out,
               int64_t n);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_ELEMENTWISE_H_
