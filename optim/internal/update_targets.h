#ifndef HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_
#define HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_

// Instruction sets for which the update loops are not compiled. Included before
// hwy/foreach_target.h. AVX3_DL adds nothing that they use to AVX3, nor SSE4
// enough to SSSE3.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)

#endif  // HAWSER_OPTIM_INTERNAL_UPDATE_TARGETS_H_
