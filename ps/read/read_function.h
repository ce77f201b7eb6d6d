// Functions that servers apply to the rows that they read.

#ifndef HAWSER_PS_READ_READ_FUNCTION_H_
#define HAWSER_PS_READ_READ_FUNCTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/update_rule.h"
#include "ps/storage/table_spec.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// A row as a read function sees it, as it was at one moment.
struct RowView {
  uint64_t key = 0;
  // [width of the table].
  std::span<const float> weights = {};
  // The state of the update rule, by the number of its slot: [width of the
  // table], or one number per row; of other slots empty.
  std::array<std::span<const float>, optim::kMaxSlots> state = {};
  // Number of updates; 0 if the rows of the table do not count them.
  int64_t num_updates = 0;
};

// A function of rows, for one request.
struct ReadFunction {
  static constexpr int64_t kMaxWidth = 65536;

  // Numbers of a result: 1 to kMaxWidth.
  int64_t width = 0;
  // Writes the result for `row` to `result`, of `width` numbers that are zero.
  // Depends only on the row and on the arguments of the request. Called by one
  // thread, without locks.
  std::function<void(const RowView& row, std::span<float> result)> read = {};
};

// Limits on the arguments of a request.
inline constexpr size_t kMaxReadArguments = 16;
inline constexpr int64_t kMaxReadArgumentBytes = int64_t{1} << 20;

// Creates the function for a request to a table. Is called for each request,
// by any thread.
//
//   arguments  f32, contiguous, on the CPU, of any number and shape: check
//              them. The function may keep them.
//
// Its errors are sent to the client with the code kInvalidArgument.
using ReadFunctionFactory = std::function<absl::StatusOr<ReadFunction>(
    const TableSpec& table, std::span<const Tensor> arguments)>;

// Adds a read function to those of this process, for all its tables. Clients
// name it in PullOptions::function:
//
//   ps::RegisterReadFunction(
//       "dot", [](const ps::TableSpec& table,
//                 std::span<const Tensor> arguments)
//                  -> absl::StatusOr<ps::ReadFunction> {
//         if (arguments.size() != 1 ||
//             arguments[0].shape() != tensor::Shape({table.width})) {
//           return absl::InvalidArgumentError("dot takes one f32[width]");
//         }
//         return ps::ReadFunction{
//             .width = 1, .read = [query = arguments[0]](
//                                     const ps::RowView& row,
//                                     std::span<float> result) {
//               result[0] = std::inner_product(
//                   row.weights.begin(), row.weights.end(),
//                   query.data<float>(), 0.0f);
//             }};
//       });
//
// Call it on each server of the tables, before the worker is started. It stays
// registered until the process ends. Thread-safe.
//
//   kInvalidArgument  the name is not 1 to 100 letters, digits, '_', '-' and
//                     '.', or there is no factory.
//   kAlreadyExists    a read function has this name.
absl::Status RegisterReadFunction(std::string_view name,
                                  ReadFunctionFactory factory);

// kInvalidArgument: this process has no such function, its factory refuses the
// arguments, or its width is out of range.
absl::StatusOr<ReadFunction> MakeReadFunction(
    std::string_view name, const TableSpec& table,
    std::span<const Tensor> arguments);

}  // namespace hawser::ps

#endif  // HAWSER_PS_READ_READ_FUNCTION_H_
