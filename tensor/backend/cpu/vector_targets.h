// Instruction sets for which the vector loops are compiled, beside the one the
// compiler assumes anyway. Included before hwy/foreach_target.h.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_

// AVX3_DL adds nothing that these loops use to AVX3, nor SSE4 enough to SSSE3.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_
