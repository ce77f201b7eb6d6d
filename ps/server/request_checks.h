// Checks of the requests of peers, which may contain anything.

#ifndef HAWSER_PS_SERVER_REQUEST_CHECKS_H_
#define HAWSER_PS_SERVER_REQUEST_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "ps/row_encoding.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/sparse_table.h"
#include "ps/table_limits.h"
#include "rpc/functions/method.h"
#include "rpc/wire/lazy_tensor.h"

namespace hawser::v1 {
enum RowEncoding : int;
}  // namespace hawser::v1

namespace hawser::ps {

// The beginning of an error text.
std::string ErrorPrefix(const SparseTable& table);

// A request with any number of tensors.
inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();
// kInvalidArgument: the request has less than `least` or more than `most`
// tensors, or the first one is not i64[n].
absl::Status CheckTensors(const SparseTable& table, const rpc::MethodCall& call,
                          size_t least, size_t most);
// The gradients, or weights, of a push: the last tensors of a request.
struct EncodedRows {
  // More than one if they are f32 in parts.
  std::span<const rpc::LazyTensor> values = {};
  // Of u8 values; otherwise null.
  const rpc::LazyTensor* scales = nullptr;
  // Of values that are not zero; otherwise null. Not read yet.
  const rpc::LazyTensor* positions = nullptr;
  int64_t num_rows = 0;
};
// Returns the tensors of `call` from number `first` on. kInvalidArgument: they
// are neither one or two of [num_rows, width] as EncodeRows makes them, nor f32
// in parts that have as many elements in all.
absl::StatusOr<EncodedRows> CheckRows(const SparseTable& table,
                                      const rpc::MethodCall& call, size_t first,
                                      int64_t num_rows);
// kInvalidArgument: the encoding of a reply is unknown.
absl::StatusOr<RowEncoding> CheckEncoding(const SparseTable& table,
                                          v1::RowEncoding encoding);
// kInvalidArgument: a push without its sender's incarnation, or whose number is
// out of range.
absl::Status CheckSequence(const SparseTable& table,
                           const rpc::MethodCall& call, uint64_t sequence);
// kResourceExhausted: more keys, or rows of the reply or of the gradients, than
// the limits. Rows have the table's width, or `width`.
absl::Status CheckLimits(const TableLimits& limits, const SparseTable& table,
                         const rpc::LazyTensor& keys, int64_t num_rows);
absl::Status CheckLimits(const TableLimits& limits, const SparseTable& table,
                         const rpc::LazyTensor& keys, int64_t num_rows,
                         int64_t width);

absl::StatusOr<std::vector<uint64_t>> ReadKeys(const rpc::LazyTensor& tensor);
// The bags of the keys. kInvalidArgument: `tensor` is not i32 of their shape,
// or a bag is not below `num_bags`.
absl::StatusOr<std::vector<int32_t>> ReadBags(const SparseTable& table,
                                              const rpc::LazyTensor& keys,
                                              const rpc::LazyTensor& tensor,
                                              int64_t num_bags);

// The rate of a PushRequest or PushSumsRequest. kInvalidArgument: the learning
// rate is not a number from 0 on, or the step is not in [0,
// ScheduleSpec::kMaxStep].
absl::Status CheckRate(const SparseTable& table, const PushRate& rate);
template <class Request>
absl::StatusOr<PushRate> RateOf(const SparseTable& table,
                                const Request& request) {
  PushRate rate;
  if (request.has_learning_rate()) rate.learning_rate = request.learning_rate();
  if (request.has_step()) rate.step = request.step();
  RETURN_IF_ERROR(CheckRate(table, rate));
  return rate;
}

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_REQUEST_CHECKS_H_
