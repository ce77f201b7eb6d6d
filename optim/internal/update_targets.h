#ifndef HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_
#define HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_

// Instruction sets for which the update loops are not compiled: their
// arithmetic does not use the additions of AVX3_DL to AVX3, and of SSSE3 and
// SSE4 to the baseline, SSE2. Must be included before hwy/foreach_target.h.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)

#endif  // HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_
