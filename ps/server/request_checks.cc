#include "ps/server/request_checks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "optim/schedule_spec.h"
#include "proto/ps.pb.h"
#include "ps/row_encoding.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/sparse_table.h"
#include "ps/table_limits.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::ps {
namespace {

constexpr uint64_t kMaxSequence = uint64_t{1} << 62;
// In errors.
constexpr size_t kMaxNamedTensors = 4;

// Whether these are f32[m_i] with so many elements in all.
bool AreParts(std::span<const rpc::LazyTensor> tensors, int64_t num_elements) {
  for (const rpc::LazyTensor& tensor : tensors) {
    if (tensor.dtype() != tensor::DType::kF32 || tensor.shape().rank() != 1) {
      return false;
    }
    num_elements -= tensor.shape()[0];
    if (num_elements < 0) return false;
  }
  return num_elements == 0;
}

}  // namespace

std::string ErrorPrefix(const SparseTable& table) {
  return absl::StrCat("table \"", table.spec().name, "\": ");
}

absl::Status CheckTensors(const SparseTable& table, const rpc::MethodCall& call,
                          size_t least, size_t most) {
  if (call.tensors.size() < least || call.tensors.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(ErrorPrefix(table), "the request has ",
                     call.tensors.size(), " tensors; it needs ", least,
                     most == kAnyNumber ? std::string(" or more")
                     : most > least     ? absl::StrCat(" to ", most)
                                        : std::string()));
  }
  const rpc::LazyTensor& keys = call.tensors[0];
  if (keys.dtype() != tensor::DType::kI64 || keys.shape().rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        ErrorPrefix(table), "keys must be i64[n], not ",
        std::string(tensor::DTypeName(keys.dtype())), keys.shape().ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<EncodedRows> CheckRows(const SparseTable& table,
                                      const rpc::MethodCall& call, size_t first,
                                      int64_t num_rows) {
  const std::span<const rpc::LazyTensor> tensors =
      std::span(call.tensors).subspan(first);
  const tensor::DType dtype = tensors[0].dtype();
  const tensor::Shape expected({num_rows, table.spec().width});
  const bool has_scales = dtype == tensor::DType::kU8;
  if ((dtype == tensor::DType::kF32 || dtype == tensor::DType::kF16 ||
       dtype == tensor::DType::kBF16 || has_scales) &&
      tensors[0].shape() == expected &&
      tensors.size() == (has_scales ? 2 : 1)) {
    if (!has_scales) return EncodedRows{.values = tensors};
    if (tensors[1].dtype() == tensor::DType::kF32 &&
        tensors[1].shape() == tensor::Shape({num_rows})) {
      return EncodedRows{.values = tensors.first(1), .scales = &tensors[1]};
    }
  }
  if (dtype == tensor::DType::kF32 && tensors[0].shape().rank() == 1 &&
      tensors[0].shape()[0] <= expected.num_elements() && tensors.size() == 2 &&
      tensors[1].dtype() == tensor::DType::kI64 &&
      tensors[1].shape() == tensors[0].shape()) {
    return EncodedRows{.values = tensors.first(1),
                       .positions = &tensors[1],
                       .num_rows = num_rows};
  }
  if (tensors.size() > 1 && AreParts(tensors, expected.num_elements())) {
    return EncodedRows{.values = tensors};
  }
  std::string sent;
  for (size_t i = 0; i < std::min(tensors.size(), kMaxNamedTensors); ++i) {
    absl::StrAppend(&sent, i > 0 ? " and " : "",
                    std::string(tensor::DTypeName(tensors[i].dtype())),
                    tensors[i].shape().ToString());
  }
  if (tensors.size() > kMaxNamedTensors) {
    absl::StrAppend(&sent, " and ", tensors.size() - kMaxNamedTensors, " more");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ErrorPrefix(table), "gradients must be f32, f16 or bf16 ",
                   expected.ToString(), ", or u8 of this shape with scales f32",
                   tensor::Shape({num_rows}).ToString(),
                   ", or f32[k] with positions i64[k], or parts f32[m] of ",
                   expected.num_elements(), " elements in all, not ", sent));
}

absl::StatusOr<RowEncoding> CheckEncoding(const SparseTable& table,
                                          v1::RowEncoding encoding) {
  switch (encoding) {
    case v1::ROWS_F32:
      return RowEncoding::kF32;
    case v1::ROWS_F16:
      return RowEncoding::kF16;
    case v1::ROWS_BF16:
      return RowEncoding::kBF16;
    case v1::ROWS_I8:
      return RowEncoding::kI8;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          ErrorPrefix(table),
          "an unknown encoding of rows: ", static_cast<int>(encoding)));
  }
}

absl::Status CheckSequence(const SparseTable& table,
                           const rpc::MethodCall& call, uint64_t sequence) {
  if (call.peer.incarnation == rpc::Incarnation{}) {
    return absl::InvalidArgumentError(
        absl::StrCat(ErrorPrefix(table),
                     "a push needs the incarnation of its sender in the "
                     "header of the request: draw a random one"));
  }
  if (sequence > 0 && sequence <= kMaxSequence) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ErrorPrefix(table),
                   "pushes count from 1 to 2^62; this one is ", sequence));
}

absl::Status CheckRate(const SparseTable& table, const PushRate& rate) {
  if (rate.learning_rate.has_value() &&
      (!std::isfinite(*rate.learning_rate) || *rate.learning_rate < 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        ErrorPrefix(table), "the learning rate must be at least 0, not ",
        *rate.learning_rate));
  }
  if (rate.step.has_value() &&
      (*rate.step < 0 || *rate.step > optim::ScheduleSpec::kMaxStep)) {
    return absl::InvalidArgumentError(
        absl::StrCat(ErrorPrefix(table),
                     "the step of a push must be 0 to 2^53, not ", *rate.step));
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const TableLimits& limits, const SparseTable& table,
                         const rpc::LazyTensor& keys, int64_t num_rows) {
  return CheckLimits(limits, table, keys, num_rows, table.spec().width);
}

absl::Status CheckLimits(const TableLimits& limits, const SparseTable& table,
                         const rpc::LazyTensor& keys, int64_t num_rows,
                         int64_t width) {
  const int64_t count = keys.shape()[0];
  if (count > limits.max_keys) {
    return absl::ResourceExhaustedError(
        absl::StrCat(ErrorPrefix(table), "a request has at most ",
                     limits.max_keys, " keys, not ", count, ": split it"));
  }
  const int64_t row_bytes = width * static_cast<int64_t>(sizeof(float));
  if (num_rows > limits.max_row_bytes / row_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(ErrorPrefix(table), "the rows of a request have at most ",
                     limits.max_row_bytes, " bytes, not ", num_rows,
                     " rows of ", row_bytes, ": split it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> ReadKeys(const rpc::LazyTensor& tensor) {
  std::vector<uint64_t> keys(tensor.bytes() / sizeof(uint64_t));
  RETURN_IF_ERROR(tensor.ReadInto(std::as_writable_bytes(std::span(keys))));
  return keys;
}

absl::StatusOr<std::vector<int32_t>> ReadBags(const SparseTable& table,
                                              const rpc::LazyTensor& keys,
                                              const rpc::LazyTensor& tensor,
                                              int64_t num_bags) {
  if (tensor.dtype() != tensor::DType::kI32 || tensor.shape() != keys.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        ErrorPrefix(table), "bags must be i32", keys.shape().ToString(),
        ", not ", std::string(tensor::DTypeName(tensor.dtype())),
        tensor.shape().ToString()));
  }
  std::vector<int32_t> bags(tensor.bytes() / sizeof(int32_t));
  RETURN_IF_ERROR(tensor.ReadInto(std::as_writable_bytes(std::span(bags))));
  for (int32_t bag : bags) {
    if (bag >= 0 && bag < num_bags) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        ErrorPrefix(table), "bag ", bag, " is not below ", num_bags));
  }
  return bags;
}

}  // namespace hawser::ps
