// Elementwise functions of dense doubles and of integers held in int64_t; the
// counterpart of tensor/backend/cpu/vector_elementwise.h for types that are
// rarely on hot paths. Outputs may be the inputs. Integer arithmetic wraps
// around; for integers only the functions listed in tensor/ops/elementwise.h
// are called.
#ifndef HAWSER_TENSOR_BACKEND_CPU_SCALAR_ELEMENTWISE_H_
#define HAWSER_TENSOR_BACKEND_CPU_SCALAR_ELEMENTWISE_H_

#include <cstdint>

#include "tensor/backend/kernel_types.h"

namespace hawser::tensor::cpu {

void Unary(UnaryOp op, const double* in, double* out, int64_t n);
void Unary(UnaryOp op, const int64_t* in, int64_t* out, int64_t n);
void Binary(BinaryOp op, const double* a, const double* b, double* out,
            int64_t n);
void Binary(BinaryOp op, const int64_t* a, const int64_t* b, int64_t* out,
            int64_t n);

// C is float, double or int64_t.
template <class C>
void Compare(CompareOp op, const C* a, const C* b, bool* out, int64_t n);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_SCALAR_ELEMENTWISE_H_
