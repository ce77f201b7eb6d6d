// Instruction sets for which the vector loops are compiled, besides the
// compiler's baseline. Included before hwy/foreach_target.h.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_

// These loops do not benefit from AVX3_DL over AVX3, nor enough from SSE4 over
// SSSE3.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_
