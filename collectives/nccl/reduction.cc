#include "collectives/nccl/reduction.h"

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor/dtype.h"

namespace hawser::collectives {

absl::Status CheckNcclReduction(const Reduction& reduction) {
  switch (reduction.op) {
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      return absl::UnimplementedError(absl::StrCat(
          "NCCL cannot reduce ",
          std::string(tensor::DTypeName(reduction.dtype)), " by ",
          std::string(ReduceOpName(reduction.op)),
          ": it has no bitwise operations; reduce a tensor of the CPU"));
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return absl::OkStatus();
  }
  std::abort();
}

}  // namespace hawser::collectives
