// The vector loops of this folder. One source has them all: Highway's headers
// take most of the time to compile it, once for each instruction set.

// Besides the compiler's baseline. These loops benefit too little from AVX3_DL
// over AVX3, and from SSSE3 and SSE4 over the baseline, SSE2, for what each set
// takes to compile.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/backend/cpu/vector_kernels.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "tensor/backend/cpu/vector_bias-inl.h"
#include "tensor/backend/cpu/vector_copy-inl.h"
#include "tensor/backend/cpu/vector_elementwise-inl.h"
#include "tensor/backend/cpu/vector_philox-inl.h"
#include "tensor/backend/cpu/vector_reduce-inl.h"
#include "tensor/backend/cpu/vector_rows-inl.h"
