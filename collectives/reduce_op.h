// Reduction operations of collectives.

#ifndef HAWSER_COLLECTIVES_REDUCE_OP_H_
#define HAWSER_COLLECTIVES_REDUCE_OP_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "tensor/dtype.h"

namespace hawser::collectives {

enum class ReduceOp : uint8_t {
  kSum,
  // The sum divided by the number of ranks; of integers, truncated.
  kAverage,
  kProduct,
  kMin,
  kMax,
  // Of integers only.
  kBitAnd,
  kBitOr,
  kBitXor,
};

inline constexpr int kNumReduceOps = 8;

// "sum", "average", "product", "min", "max", "bit-and", "bit-or", "bit-xor".
std::string_view ReduceOpName(ReduceOp op);

// Operation on elements of a dtype. Sums and products of integers wrap around.
// Those of f16 and bf16 are computed in f32 and rounded once. A NaN among the
// operands of min and max makes the result NaN.
struct Reduction {
  tensor::DType dtype = tensor::DType::kF32;
  ReduceOp op = ReduceOp::kSum;
};

// kInvalidArgument: a bitwise operation on floating-point numbers, or any on
// bool.
absl::Status CheckReduction(const Reduction& reduction);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_REDUCE_OP_H_
