#include "ps/server/row_requests.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/clock/decoded_push.h"
#include "ps/ordered_keys.h"
#include "ps/row_encoding.h"
#include "ps/server/gradient_reader.h"
#include "ps/server/request_checks.h"
#include "ps/server/row_reader.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/push_observer.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/table_limits.h"
#include "rpc/functions/method.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// Of rows that are read to be added. A part of a second-level cache.
constexpr size_t kBlockBytes = size_t{256} << 10;
// Enough keys for each partition to overlap its loads from memory.
constexpr size_t kMinBlockKeys = 1024;

void AddRow(const float* row, size_t width, float* sum) {
  for (size_t i = 0; i < width; ++i) sum[i] += row[i];
}

size_t BytesOf(const std::vector<tensor::Tensor>& tensors) {
  size_t bytes = 0;
  for (const tensor::Tensor& tensor : tensors) {
    bytes += static_cast<size_t>(tensor.num_elements()) *
             tensor::ItemBytes(tensor.dtype());
  }
  return bytes;
}

size_t BytesOf(std::span<const rpc::LazyTensor> tensors) {
  size_t bytes = 0;
  for (const rpc::LazyTensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

// Memory for rows: that of the reply if they are `final`, otherwise some that
// the caller cannot change before they are encoded.
absl::StatusOr<tensor::Tensor> NewRows(const rpc::MethodCall& call,
                                       const tensor::Shape& shape, bool final) {
  if (!final) return tensor::Tensor::TryEmpty(shape);
  return call.NewReplyTensor(shape, tensor::DType::kF32);
}

// Reads the rows of a partition, for a caller that has pushed to them.
absl::Status PullPart(const LoggedPush& push, const PartitionRange& range,
                      size_t width, float* rows) {
  return range.partition->Pull(
      {&push.keys[range.begin], range.end - range.begin}, MissingRows::kCreate,
      rows + range.begin * width);
}

// Applies a push without values, which are read partition by partition, and is
// not logged. Reads the rows after it to `rows` unless that is null.
absl::StatusOr<PushOutcome> PushParts(const LoggedPush& push,
                                      const std::vector<PartitionRange>& ranges,
                                      size_t width, GradientReader& values,
                                      float* rows) {
  auto outcome = PushOutcome::kRepeated;
  for (const PartitionRange& range : ranges) {
    ASSIGN_OR_RETURN(const float* const read,
                     values.Read(range.begin, range.end));
    LoggedPush part = push;
    part.keys = push.keys.subspan(range.begin, range.end - range.begin);
    part.values = {read, part.keys.size() * width};
    ASSIGN_OR_RETURN(const PushOutcome of_part,
                     ApplyPush(*range.partition, part));
    if (of_part == PushOutcome::kApplied) outcome = PushOutcome::kApplied;
    if (rows != nullptr) {
      RETURN_IF_ERROR(PullPart(push, range, width, rows));
    }
  }
  return outcome;
}

// The same for a push that is logged as a whole.
absl::StatusOr<PushOutcome> PushLogged(
    LoggedPush push, const std::vector<PartitionRange>& ranges, size_t width,
    LoggedTable& logged, GradientReader& values, float* rows) {
  ASSIGN_OR_RETURN(const float* const read, values.Read(0, push.keys.size()));
  push.values = {read, push.keys.size() * width};
  ASSIGN_OR_RETURN(const PushOutcome outcome, logged.Push(push, ranges));
  if (rows == nullptr) return outcome;
  for (const PartitionRange& range : ranges) {
    RETURN_IF_ERROR(PullPart(push, range, width, rows));
  }
  return outcome;
}

absl::StatusOr<PushKind> KindOf(const SparseTable& table, v1::PushKind kind) {
  switch (kind) {
    case v1::UPDATE:
      return PushKind::kUpdate;
    case v1::ASSIGN:
      return PushKind::kAssign;
    case v1::ASSIGN_MISSING:
      return PushKind::kAssignMissing;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(ErrorPrefix(table),
                       "an unknown kind of push: ", static_cast<int>(kind)));
  }
}

// Of a PushRequest or PushSumsRequest.
template <class Request>
WorkerTime TimeOf(const Request& request) {
  return {request.time().join(), request.time().clock()};
}

// The push of such a request, without keys and values.
template <class Request>
absl::StatusOr<DecodedPush> NewPush(const SparseTable& table,
                                    const rpc::MethodCall& call,
                                    const Request& request) {
  RETURN_IF_ERROR(CheckSequence(table, call, request.sequence()));
  DecodedPush push;
  push.id = {call.peer.incarnation, request.sequence()};
  push.time = TimeOf(request);
  ASSIGN_OR_RETURN(push.rate, RateOf(table, request));
  return push;
}

absl::StatusOr<DecodedPush> ReadSums(const SparseTable& table,
                                     const TableLimits& limits,
                                     const rpc::MethodCall& call,
                                     const v1::PushSumsRequest& request) {
  RETURN_IF_ERROR(CheckTensors(table, call, 3, 4));
  const rpc::LazyTensor& gradients = call.tensors[2];
  const int64_t num_bags =
      gradients.shape().rank() == 2 ? gradients.shape()[0] : 0;
  ASSIGN_OR_RETURN(const EncodedRows encoded,
                   CheckRows(table, call, 2, num_bags));
  // The gradients of the distinct keys are held while they are applied.
  RETURN_IF_ERROR(CheckLimits(limits, table, call.tensors[0],
                              std::max(num_bags, call.tensors[0].shape()[0])));
  ASSIGN_OR_RETURN(DecodedPush push, NewPush(table, call, request));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(const std::vector<int32_t> bags,
                   ReadBags(table, call.tensors[0], call.tensors[1], num_bags));
  const OrderedKeys ordered(keys);
  push.keys.assign(ordered.keys().begin(), ordered.keys().end());
  const auto width = static_cast<size_t>(table.spec().width);
  GradientReader reader(encoded, width);
  ASSIGN_OR_RETURN(const float* const of_bags,
                   reader.Read(0, static_cast<size_t>(num_bags)));
  push.values.resize(push.keys.size() * width);
  for (size_t i = 0; i < keys.size(); ++i) {
    AddRow(of_bags + bags[i] * width, width,
           &push.values[ordered.positions()[i] * width]);
  }
  return push;
}

}  // namespace

absl::StatusOr<rpc::Message<v1::PullReply>> PullRows(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PullRequest& request) {
  SparseTable& table = logged.table();
  ASSIGN_OR_RETURN(const RowReader reader,
                   RowReader::Create(table, request.function(), call, 1));
  ASSIGN_OR_RETURN(const RowEncoding encoding,
                   CheckEncoding(table, request.encoding()));
  RETURN_IF_ERROR(CheckLimits(limits, table, call.tensors[0],
                              call.tensors[0].shape()[0], reader.width()));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(
      tensor::Tensor rows,
      NewRows(call, {static_cast<int64_t>(keys.size()), reader.width()},
              encoding == RowEncoding::kF32 && request.function().empty()));
  RETURN_IF_ERROR(reader.Read(
      keys, request.keep_missing() ? MissingRows::kKeep : MissingRows::kCreate,
      {rows.data<float>(), static_cast<size_t>(rows.num_elements())}));
  rpc::Message<v1::PullReply> reply;
  reply.tensors = EncodeRows(rows, encoding);
  logged.statistics().CountPull(keys.size(), BytesOf(reply.tensors));
  return reply;
}

absl::StatusOr<rpc::Message<v1::PushReply>> PushRows(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PushRequest& request) {
  logged.Observe(PushStage::kReceived);
  SparseTable& table = logged.table();
  RETURN_IF_ERROR(CheckTensors(table, call, 2, kAnyNumber));
  const int64_t num_keys = call.tensors[0].shape()[0];
  RETURN_IF_ERROR(CheckLimits(limits, table, call.tensors[0], num_keys));
  ASSIGN_OR_RETURN(const EncodedRows encoded,
                   CheckRows(table, call, 1, num_keys));
  ASSIGN_OR_RETURN(const RowEncoding encoding,
                   CheckEncoding(table, request.encoding()));
  RETURN_IF_ERROR(CheckSequence(table, call, request.sequence()));
  ASSIGN_OR_RETURN(const PushKind kind, KindOf(table, request.kind()));
  ASSIGN_OR_RETURN(const PushRate rate, RateOf(table, request));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   table.SplitOrdered(keys));
  tensor::Tensor rows;
  if (request.pull()) {
    ASSIGN_OR_RETURN(rows, NewRows(call, {num_keys, table.spec().width},
                                   encoding == RowEncoding::kF32));
  }
  const auto width = static_cast<size_t>(table.spec().width);
  LoggedPush push = {
      {call.peer.incarnation, request.sequence()}, rate, keys, {}, kind};
  // Assignments have no clock.
  if (kind == PushKind::kUpdate) push.worker_time = TimeOf(request);
  GradientReader values(encoded, width);
  float* const pulled = request.pull() ? rows.data<float>() : nullptr;
  ASSIGN_OR_RETURN(const PushOutcome outcome,
                   logged.is_logged()
                       ? PushLogged(push, ranges, width, logged, values, pulled)
                       : PushParts(push, ranges, width, values, pulled));
  if (!logged.is_logged() && push.worker_time.joined()) {
    logged.clocks()->PushApplied(push.id, push.worker_time);
  }
  logged.statistics().CountPush(outcome, keys.size(), BytesOf(encoded.values));
  rpc::Message<v1::PushReply> reply;
  if (request.pull()) {
    reply.tensors = EncodeRows(rows, encoding);
    logged.statistics().CountPull(keys.size(), BytesOf(reply.tensors));
  }
  logged.Observe(PushStage::kReplying);
  return reply;
}

absl::StatusOr<rpc::Message<v1::PushReply>> ReadPushedRows(
    LoggedTable& logged, std::span<const uint64_t> keys,
    v1::RowEncoding encoding) {
  ASSIGN_OR_RETURN(const RowEncoding checked,
                   CheckEncoding(logged.table(), encoding));
  ASSIGN_OR_RETURN(tensor::Tensor rows,
                   tensor::Tensor::TryEmpty({static_cast<int64_t>(keys.size()),
                                             logged.table().spec().width}));
  RETURN_IF_ERROR(logged.table().Pull(
      keys, {rows.data<float>(), static_cast<size_t>(rows.num_elements())}));
  rpc::Message<v1::PushReply> reply;
  reply.tensors = EncodeRows(rows, checked);
  logged.statistics().CountPull(keys.size(), BytesOf(reply.tensors));
  return reply;
}

absl::StatusOr<DecodedPush> ReadPush(const SparseTable& table,
                                     const TableLimits& limits,
                                     const rpc::MethodCall& call,
                                     const v1::PushRequest& request) {
  RETURN_IF_ERROR(CheckTensors(table, call, 2, kAnyNumber));
  const int64_t count = call.tensors[0].shape()[0];
  RETURN_IF_ERROR(CheckLimits(limits, table, call.tensors[0], count));
  ASSIGN_OR_RETURN(const EncodedRows encoded, CheckRows(table, call, 1, count));
  RETURN_IF_ERROR(CheckEncoding(table, request.encoding()));
  ASSIGN_OR_RETURN(DecodedPush push, NewPush(table, call, request));
  ASSIGN_OR_RETURN(push.keys, ReadKeys(call.tensors[0]));
  RETURN_IF_ERROR(table.SplitOrdered(push.keys));
  GradientReader values(encoded, static_cast<size_t>(table.spec().width));
  ASSIGN_OR_RETURN(push.values, values.Take(push.keys.size()));
  return push;
}

absl::StatusOr<rpc::Message<v1::PullSumsReply>> PullSums(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PullSumsRequest& request) {
  SparseTable& table = logged.table();
  ASSIGN_OR_RETURN(const RowReader reader,
                   RowReader::Create(table, request.function(), call, 2));
  ASSIGN_OR_RETURN(const RowEncoding encoding,
                   CheckEncoding(table, request.encoding()));
  if (request.num_bags() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        ErrorPrefix(table), "a request for ", request.num_bags(), " bags"));
  }
  RETURN_IF_ERROR(CheckLimits(limits, table, call.tensors[0],
                              request.num_bags(), reader.width()));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(
      const std::vector<int32_t> bags,
      ReadBags(table, call.tensors[0], call.tensors[1], request.num_bags()));
  const int64_t width = reader.width();
  ASSIGN_OR_RETURN(tensor::Tensor sums,
                   tensor::Tensor::TryEmpty({request.num_bags(), width}));
  float* const out = sums.data<float>();
  std::fill_n(out, sums.num_elements(), 0.0f);
  const MissingRows missing =
      request.keep_missing() ? MissingRows::kKeep : MissingRows::kCreate;
  // Rows of a block stay in the cache until they are added.
  const size_t block =
      std::max<size_t>(kBlockBytes / (width * sizeof(float)), kMinBlockKeys);
  std::vector<float> rows(std::min(block, keys.size()) *
                          static_cast<size_t>(width));
  for (size_t begin = 0; begin < keys.size(); begin += block) {
    const size_t count = std::min(block, keys.size() - begin);
    RETURN_IF_ERROR(reader.Read({&keys[begin], count}, missing,
                                {rows.data(), count * width}));
    for (size_t i = 0; i < count; ++i) {
      AddRow(&rows[i * width], width, out + bags[begin + i] * width);
    }
  }
  rpc::Message<v1::PullSumsReply> reply;
  reply.tensors = EncodeRows(sums, encoding);
  logged.statistics().CountPull(keys.size(), BytesOf(reply.tensors));
  return reply;
}

absl::StatusOr<DecodedPush> ReadPush(const SparseTable& table,
                                     const TableLimits& limits,
                                     const rpc::MethodCall& call,
                                     const v1::PushSumsRequest& request) {
  ASSIGN_OR_RETURN(DecodedPush push, ReadSums(table, limits, call, request));
  RETURN_IF_ERROR(table.SplitOrdered(push.keys));
  return push;
}

absl::Status PushSums(LoggedTable& logged, const TableLimits& limits,
                      const rpc::MethodCall& call,
                      const v1::PushSumsRequest& request) {
  logged.Observe(PushStage::kReceived);
  ASSIGN_OR_RETURN(const DecodedPush push,
                   ReadSums(logged.table(), limits, call, request));
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   logged.table().SplitOrdered(push.keys));
  ASSIGN_OR_RETURN(const PushOutcome outcome, logged.Push(push.view(), ranges));
  logged.statistics().CountPush(outcome,
                                static_cast<size_t>(call.tensors[0].shape()[0]),
                                call.tensors[2].bytes());
  logged.Observe(PushStage::kReplying);
  return absl::OkStatus();
}

}  // namespace hawser::ps
