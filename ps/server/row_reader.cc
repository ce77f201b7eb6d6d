#include "ps/server/row_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/read/read_function.h"
#include "ps/server/request_checks.h"
#include "ps/storage/row_codec.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "rpc/functions/method.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// Of whole rows that are copied at a time. A part of a second-level cache.
constexpr size_t kBlockBytes = size_t{256} << 10;
// Enough keys for each partition to overlap its loads from memory.
constexpr size_t kMinBlockKeys = 1024;

absl::StatusOr<std::vector<Tensor>> ReadArguments(const SparseTable& table,
                                                  const rpc::MethodCall& call,
                                                  size_t first) {
  size_t bytes = 0;
  for (size_t i = first; i < call.tensors.size(); ++i) {
    const rpc::LazyTensor& argument = call.tensors[i];
    if (argument.dtype() != tensor::DType::kF32) {
      return absl::InvalidArgumentError(absl::StrCat(
          ErrorPrefix(table), "arguments of a read function are f32, not ",
          std::string(tensor::DTypeName(argument.dtype()))));
    }
    bytes += argument.bytes();
  }
  if (bytes > static_cast<size_t>(kMaxReadArgumentBytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        ErrorPrefix(table), "the arguments of a read function have at most ",
        kMaxReadArgumentBytes, " bytes, not ", bytes));
  }
  std::vector<Tensor> arguments;
  for (size_t i = first; i < call.tensors.size(); ++i) {
    ASSIGN_OR_RETURN(arguments.emplace_back(), call.tensors[i].Read());
  }
  return arguments;
}

}  // namespace

absl::StatusOr<RowReader> RowReader::Create(SparseTable& table,
                                            const std::string& function,
                                            const rpc::MethodCall& call,
                                            size_t first) {
  RETURN_IF_ERROR(CheckTensors(
      table, call, first, first + (function.empty() ? 0 : kMaxReadArguments)));
  if (function.empty()) return RowReader(table, std::nullopt);
  ASSIGN_OR_RETURN(const std::vector<Tensor> arguments,
                   ReadArguments(table, call, first));
  ASSIGN_OR_RETURN(ReadFunction made,
                   MakeReadFunction(function, table.spec(), arguments));
  return RowReader(table, std::move(made));
}

absl::Status RowReader::Read(std::span<const uint64_t> keys,
                             MissingRows missing, std::span<float> rows) const {
  if (!function_.has_value()) return table_.Pull(keys, rows, missing);
  const size_t row_bytes = table_.format().layout().bytes();
  const size_t block = std::max(kBlockBytes / row_bytes, kMinBlockKeys);
  const auto result_width = static_cast<size_t>(width());
  std::vector<std::byte> whole(std::min(block, keys.size()) * row_bytes);
  for (size_t begin = 0; begin < keys.size(); begin += block) {
    const size_t count = std::min(block, keys.size() - begin);
    const std::span<const uint64_t> part = keys.subspan(begin, count);
    const std::span<std::byte> copies(whole.data(), count * row_bytes);
    RETURN_IF_ERROR(table_.PullWholeRows(part, copies, missing));
    Call(part, copies,
         rows.subspan(begin * result_width, count * result_width));
  }
  return absl::OkStatus();
}

void RowReader::Call(std::span<const uint64_t> keys, std::span<std::byte> whole,
                     std::span<float> results) const {
  const RowLayout& layout = table_.format().layout();
  const auto result_width = static_cast<size_t>(width());
  const bool wide = layout.dtype() == tensor::DType::kF32;
  std::vector<float> weights(wide ? 0 : layout.width());
  std::fill(results.begin(), results.end(), 0.0f);
  for (size_t i = 0; i < keys.size(); ++i) {
    std::byte* const row = whole.data() + i * layout.bytes();
    RowView view{.key = keys[i], .num_updates = layout.step(row)};
    if (wide) {
      view.weights = {reinterpret_cast<const float*>(row), layout.width()};
    } else {
      ReadWeights(layout, row, weights.data());
      view.weights = weights;
    }
    for (size_t slot = 0; slot < layout.num_slots(); ++slot) {
      view.state[slot] = {layout.slot(row, slot), layout.slot_width(slot)};
    }
    function_->read(view, results.subspan(i * result_width, result_width));
  }
}

}  // namespace hawser::ps
