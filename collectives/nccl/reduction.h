// Reductions that NCCL has.

#ifndef HAWSER_COLLECTIVES_NCCL_REDUCTION_H_
#define HAWSER_COLLECTIVES_NCCL_REDUCTION_H_

#include "absl/status/status.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// kUnimplemented: NCCL does not have the operation; names it. The reduction
// fits its dtype (CheckReduction).
absl::Status CheckNcclReduction(const Reduction& reduction);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_REDUCTION_H_
