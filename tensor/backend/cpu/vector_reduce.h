// Reductions of dense floats, vectorised for the CPU the program runs on.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_H_

#include <cstdint>

namespace hawser::tensor::cpu {

// Computes sums of blocks of a few thousand elements in f32, and adds them in
// f64.
double Sum(const float* x, int64_t n);
double SumOfSquares(const float* x, int64_t n);

// NaN if any element is NaN; -infinity and infinity, respectively, if n is 0.
float Max(const float* x, int64_t n);
float Min(const float* x, int64_t n);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_REDUCE_H_
