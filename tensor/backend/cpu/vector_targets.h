// Instruction sets for which the vector loops are compiled, besides the
// compiler's baseline. Included before hwy/foreach_target.h.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_

// These loops benefit too little from AVX3_DL over AVX3, and from SSSE3 and
// SSE4 over the baseline, SSE2, for what each set takes to compile.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_TARGETS_H_
