#include "optim/kernels/update_kernels.h"

#include <span>

// Instruction sets for which the loops are not compiled: their arithmetic does
// not use the additions of AVX3_DL to AVX3, and of SSSE3 and SSE4 to the
// baseline.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/kernels/update_kernels.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/kernels/adadelta-inl.h"
#include "optim/kernels/adagrad-inl.h"
#include "optim/kernels/adam-inl.h"
#include "optim/kernels/adamax-inl.h"
#include "optim/kernels/ftrl-inl.h"
#include "optim/kernels/lamb-inl.h"
#include "optim/kernels/rmsprop-inl.h"
#include "optim/kernels/row_wise_adagrad-inl.h"
#include "optim/kernels/rprop-inl.h"
#include "optim/kernels/sgd-inl.h"
#include "optim/kernels/sparse_adam-inl.h"
#include "optim/update_rule.h"

#if HWY_ONCE
namespace hawser::optim {

HWY_EXPORT(AdadeltaUpdate);
HWY_EXPORT(AdagradUpdate);
HWY_EXPORT(AdamUpdate);
HWY_EXPORT(AdamaxUpdate);
HWY_EXPORT(FtrlUpdate);
HWY_EXPORT(LambUpdate);
HWY_EXPORT(RmsPropUpdate);
HWY_EXPORT(RowWiseAdagradUpdate);
HWY_EXPORT(RpropUpdate);
HWY_EXPORT(SgdUpdate);
HWY_EXPORT(SparseAdamUpdate);

namespace internal {

void AdadeltaUpdate(const AdadeltaOptions& options,
                    std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(AdadeltaUpdate)(options, spans);
}

void AdagradUpdate(const AdagradOptions& options,
                   std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(AdagradUpdate)(options, spans);
}

void AdamUpdate(const AdamOptions& options, bool decoupled,
                std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(AdamUpdate)(options, decoupled, spans);
}

void AdamaxUpdate(const AdamaxOptions& options,
                  std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(AdamaxUpdate)(options, spans);
}

void FtrlUpdate(const FtrlOptions& options, std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(FtrlUpdate)(options, spans);
}

void LambUpdate(const LambOptions& options, std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(LambUpdate)(options, spans);
}

void RmsPropUpdate(const RmsPropOptions& options,
                   std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(RmsPropUpdate)(options, spans);
}

void RowWiseAdagradUpdate(const RowWiseAdagradOptions& options,
                          std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(RowWiseAdagradUpdate)(options, spans);
}

void RpropUpdate(const RpropOptions& options,
                 std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(RpropUpdate)(options, spans);
}

void SgdUpdate(const SgdOptions& options, std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(SgdUpdate)(options, spans);
}

void SparseAdamUpdate(const SparseAdamOptions& options,
                      std::span<const UpdateSpan> spans) {
  HWY_DYNAMIC_DISPATCH(SparseAdamUpdate)(options, spans);
}

}  // namespace internal
}  // namespace hawser::optim
#endif  // HWY_ONCE
