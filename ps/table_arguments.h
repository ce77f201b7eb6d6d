// Checks of the tensors that callers pass to a table, and the shapes of
// results.

#ifndef HAWSER_PS_TABLE_ARGUMENTS_H_
#define HAWSER_PS_TABLE_ARGUMENTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// kInvalidArgument: `keys` is not i64 on the CPU.
absl::Status CheckKeys(const Tensor& keys);
// kInvalidArgument: `keys` is not i64[bags..., n] on the CPU.
absl::Status CheckBags(const Tensor& keys);
// kInvalidArgument: `rows` is not f32 of the `expected` shape on the CPU; the
// error calls them `name`.
absl::Status CheckRows(const Tensor& rows, const tensor::Shape& expected,
                       const std::string& name = "gradients");

// Returns the arguments of the read function `function`, contiguous.
// kInvalidArgument: one is not f32 on the CPU, they are too many or too large,
// or there is no function.
absl::StatusOr<std::vector<Tensor>> CheckArguments(
    const std::string& function, const std::vector<Tensor>& arguments);

// The shape of a row per key.
tensor::Shape RowsShape(const Tensor& keys, int64_t width);
// The shape of a row per bag of `keys`.
tensor::Shape SumsShape(const Tensor& keys, int64_t width);

// The keys as numbers without sign. `keys` is contiguous.
std::span<const uint64_t> Numbers(const Tensor& keys);

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_ARGUMENTS_H_
