// The loops of the update rules, for the instruction set of this processor.
//
// One source has them all: Highway's headers take most of the time to compile
// it, once for each instruction set.

#ifndef HAWSER_OPTIM_KERNELS_UPDATE_KERNELS_H_
#define HAWSER_OPTIM_KERNELS_UPDATE_KERNELS_H_

#include <span>

#include "optim/update_rule.h"

namespace hawser::optim {

struct AdadeltaOptions;
struct AdagradOptions;
struct AdamOptions;
struct AdamaxOptions;
struct FtrlOptions;
struct LambOptions;
struct RmsPropOptions;
struct RowWiseAdagradOptions;
struct RpropOptions;
struct SgdOptions;
struct SparseAdamOptions;

namespace internal {

// Each does UpdateRule::Update of its rule. `decoupled`: AdamW.
void AdadeltaUpdate(const AdadeltaOptions& options,
                    std::span<const UpdateSpan> spans);
void AdagradUpdate(const AdagradOptions& options,
                   std::span<const UpdateSpan> spans);
void AdamUpdate(const AdamOptions& options, bool decoupled,
                std::span<const UpdateSpan> spans);
void AdamaxUpdate(const AdamaxOptions& options,
                  std::span<const UpdateSpan> spans);
void FtrlUpdate(const FtrlOptions& options, std::span<const UpdateSpan> spans);
void LambUpdate(const LambOptions& options, std::span<const UpdateSpan> spans);
void RmsPropUpdate(const RmsPropOptions& options,
                   std::span<const UpdateSpan> spans);
void RowWiseAdagradUpdate(const RowWiseAdagradOptions& options,
                          std::span<const UpdateSpan> spans);
void RpropUpdate(const RpropOptions& options,
                 std::span<const UpdateSpan> spans);
void SgdUpdate(const SgdOptions& options, std::span<const UpdateSpan> spans);
void SparseAdamUpdate(const SparseAdamOptions& options,
                      std::span<const UpdateSpan> spans);

}  // namespace internal
}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_KERNELS_UPDATE_KERNELS_H_
