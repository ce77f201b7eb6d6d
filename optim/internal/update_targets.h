#ifndef HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_
#define HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_

// Instruction sets for which the update loops are not compiled: they do not use
// the additions of AVX3_DL to AVX3, and use few of SSE4 to SSSE3. Must be
// included before hwy/foreach_target.h.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)

#endif  // HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_
