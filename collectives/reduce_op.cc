#include "collectives/reduce_op.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor/dtype.h"

namespace hawser::collectives {

std::string_view ReduceOpName(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kBitAnd:
      return "bit-and";
    case ReduceOp::kBitOr:
      return "bit-or";
    case ReduceOp::kBitXor:
      return "bit-xor";
  }
  std::abort();
}

absl::Status CheckReduction(const Reduction& reduction) {
  const bool bitwise = reduction.op == ReduceOp::kBitAnd ||
                       reduction.op == ReduceOp::kBitOr ||
                       reduction.op == ReduceOp::kBitXor;
  if (reduction.dtype != tensor::DType::kBool &&
      !(bitwise && tensor::IsFloatingPoint(reduction.dtype))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot reduce elements of dtype ",
                   std::string(tensor::DTypeName(reduction.dtype)), " by ",
                   std::string(ReduceOpName(reduction.op)),
                   bitwise ? ": bitwise operations need integers"
                           : ": convert them to u8 first"));
}

}  // namespace hawser::collectives
