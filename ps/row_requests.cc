#include "ps/row_requests.h"

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
#include "ps/gradient_reader.h"
#include "ps/ordered_keys.h"
#include "ps/request_checks.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/table_limits.h"
#include "rpc/functions/method.h"
#include "rpc/wire/lazy_tensor.h"
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

// Applies a push that is not logged, partition by partition.
absl::StatusOr<PushOutcome> ApplyPush(const std::vector<PartitionRange>& ranges,
                                      const std::vector<uint64_t>& keys,
                                      GradientReader& gradients,
                                      double learning_rate, PushId id) {
  auto outcome = PushOutcome::kRepeated;
  for (const PartitionRange& range : ranges) {
    ASSIGN_OR_RETURN(const float* const rows,
                     gradients.Read(range.begin, range.end));
    ASSIGN_OR_RETURN(
        const PushOutcome part,
        range.partition->Push({&keys[range.begin], range.end - range.begin},
                              rows, learning_rate, id));
    if (part == PushOutcome::kApplied) outcome = PushOutcome::kApplied;
  }
  return outcome;
}

}  // namespace

absl::StatusOr<rpc::Message<v1::PullReply>> PullRows(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PullRequest& request) {
  SparseTable& table = logged.table();
  RETURN_IF_ERROR(CheckTensors(table, call, 1));
  RETURN_IF_ERROR(
      CheckLimits(limits, table, call.tensors[0], call.tensors[0].shape()[0]));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(tensor::Tensor rows,
                   tensor::Tensor::TryEmpty({static_cast<int64_t>(keys.size()),
                                             table.spec().width}));
  RETURN_IF_ERROR(table.Pull(
      keys, {rows.data<float>(), static_cast<size_t>(rows.num_elements())},
      request.keep_missing() ? MissingRows::kKeep : MissingRows::kCreate));
  logged.statistics().CountPull(keys.size(),
                                rows.num_elements() * sizeof(float));
  rpc::Message<v1::PullReply> reply;
  reply.tensors.push_back(std::move(rows));
  return reply;
}

absl::Status PushRows(LoggedTable& logged, const TableLimits& limits,
                      const rpc::MethodCall& call,
                      const v1::PushRequest& request) {
  SparseTable& table = logged.table();
  RETURN_IF_ERROR(CheckTensors(table, call, 2));
  RETURN_IF_ERROR(
      CheckLimits(limits, table, call.tensors[0], call.tensors[0].shape()[0]));
  RETURN_IF_ERROR(
      CheckGradients(table, call.tensors[0].shape()[0], call.tensors[1]));
  RETURN_IF_ERROR(CheckSequence(table, call, request.sequence()));
  ASSIGN_OR_RETURN(const double learning_rate, LearningRate(table, request));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   table.SplitOrdered(keys));
  const PushId id{call.peer.incarnation, request.sequence()};
  GradientReader gradients(call.tensors[1],
                           static_cast<size_t>(table.spec().width));
  auto outcome = PushOutcome::kRepeated;
  if (logged.is_logged()) {
    ASSIGN_OR_RETURN(const float* const rows, gradients.Read(0, keys.size()));
    const std::span all(rows, keys.size() * table.spec().width);
    ASSIGN_OR_RETURN(outcome,
                     logged.Push({id, learning_rate, keys, all}, ranges));
  } else {
    ASSIGN_OR_RETURN(outcome,
                     ApplyPush(ranges, keys, gradients, learning_rate, id));
  }
  logged.statistics().CountPush(outcome, keys.size(), call.tensors[1].bytes());
  return absl::OkStatus();
}

absl::StatusOr<rpc::Message<v1::PullSumsReply>> PullSums(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PullSumsRequest& request) {
  SparseTable& table = logged.table();
  RETURN_IF_ERROR(CheckTensors(table, call, 2));
  if (request.num_bags() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        ErrorPrefix(table), "a request for ", request.num_bags(), " bags"));
  }
  RETURN_IF_ERROR(
      CheckLimits(limits, table, call.tensors[0], request.num_bags()));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(
      const std::vector<int32_t> bags,
      ReadBags(table, call.tensors[0], call.tensors[1], request.num_bags()));
  const int64_t width = table.spec().width;
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
    RETURN_IF_ERROR(table.Pull({&keys[begin], count},
                               {rows.data(), count * width}, missing));
    for (size_t i = 0; i < count; ++i) {
      AddRow(&rows[i * width], width, out + bags[begin + i] * width);
    }
  }
  logged.statistics().CountPull(keys.size(),
                                sums.num_elements() * sizeof(float));
  rpc::Message<v1::PullSumsReply> reply;
  reply.tensors.push_back(std::move(sums));
  return reply;
}

absl::Status PushSums(LoggedTable& logged, const TableLimits& limits,
                      const rpc::MethodCall& call,
                      const v1::PushSumsRequest& request) {
  SparseTable& table = logged.table();
  RETURN_IF_ERROR(CheckTensors(table, call, 3));
  const rpc::LazyTensor& gradients = call.tensors[2];
  const int64_t num_bags =
      gradients.shape().rank() == 2 ? gradients.shape()[0] : 0;
  RETURN_IF_ERROR(CheckGradients(table, num_bags, gradients));
  // The gradients of the distinct keys are held while they are applied.
  RETURN_IF_ERROR(CheckLimits(limits, table, call.tensors[0],
                              std::max(num_bags, call.tensors[0].shape()[0])));
  RETURN_IF_ERROR(CheckSequence(table, call, request.sequence()));
  ASSIGN_OR_RETURN(const double learning_rate, LearningRate(table, request));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(const std::vector<int32_t> bags,
                   ReadBags(table, call.tensors[0], call.tensors[1], num_bags));
  const OrderedKeys ordered(keys);
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   table.SplitOrdered(ordered.keys()));
  const auto width = static_cast<size_t>(table.spec().width);
  GradientReader reader(gradients, width);
  ASSIGN_OR_RETURN(const float* const of_bags,
                   reader.Read(0, static_cast<size_t>(num_bags)));
  std::vector<float> of_keys(ordered.keys().size() * width);
  for (size_t i = 0; i < keys.size(); ++i) {
    AddRow(of_bags + bags[i] * width, width,
           &of_keys[ordered.positions()[i] * width]);
  }
  ASSIGN_OR_RETURN(const PushOutcome outcome,
                   logged.Push({{call.peer.incarnation, request.sequence()},
                                learning_rate,
                                ordered.keys(),
                                of_keys},
                               ranges));
  logged.statistics().CountPush(outcome, keys.size(), gradients.bytes());
  return absl::OkStatus();
}

}  // namespace hawser::ps
