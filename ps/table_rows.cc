// Rows of keys: Table::Pull, Push, PushPull and Assign.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/client/table_client.h"
#include "ps/distinct_rows.h"
#include "ps/ordered_keys.h"
#include "ps/route/join_parts.h"
#include "ps/route/table_location.h"
#include "ps/row_encoding.h"
#include "ps/row_values.h"
#include "ps/service_methods.h"
#include "ps/storage/worker_time.h"
#include "ps/table.h"
#include "ps/table_arguments.h"
#include "ps/table_state.h"
#include "rpc/functions/method.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// Returns the rows of `keys`, i64[n], each with `width` weights, from `server`.
async::Future<Tensor> PullFrom(TableClient& client, const std::string& server,
                               const v1::PullRequest& request, int64_t width,
                               Tensor keys,
                               const rpc::MethodCallOptions& options) {
  const tensor::Shape shape({keys.num_elements(), width});
  return RowsOfReply(client.CallForTensors(server, kPullMethod, request,
                                           {std::move(keys)}, options),
                     shape);
}

// Returns the tensors of a message for the rows of `shape`, [n, width], from
// row `begin` on.
std::vector<Tensor> EncodeValues(const RowValues& rows, int64_t begin,
                                 const tensor::Shape& shape,
                                 RowEncoding encoding) {
  const int64_t first = begin * shape[1];
  const int64_t count = shape.num_elements();
  if (encoding == RowEncoding::kF32) {
    std::vector<Tensor> parts = rows.Slice(first, count);
    if (parts.size() > 1) return parts;
  }
  return EncodeRows(*rows.Join(first, count).View(shape), encoding);
}

}  // namespace

async::Future<Tensor> Table::Pull(const Tensor& keys,
                                  const PullOptions& options) const {
  if (absl::Status status = CheckKeys(keys); !status.ok()) {
    return async::MakeReadyFuture<Tensor>(std::move(status));
  }
  if (CallsFunction(options)) return state_->PullResults(keys, options);
  absl::StatusOr<Tensor> flat = keys.Reshape({keys.num_elements()});
  if (flat.ok()) flat = flat->Contiguous();
  if (!flat.ok()) return async::MakeReadyFuture<Tensor>(flat.status());
  const tensor::Shape shape = RowsShape(keys, spec().width);
  const std::span<const uint64_t> numbers = Numbers(std::as_const(*flat));
  const absl::StatusOr<WorkerTime> time = state_->BeginPull();
  if (!time.ok()) return async::MakeReadyFuture<Tensor>(time.status());
  v1::PullRequest request;
  SetTime(*time, request);
  request.set_table(spec().name);
  request.set_keep_missing(!options.create_missing);
  request.set_encoding(ToProto(options.encoding));
  const auto send = [state = state_, keys = *std::move(flat), shape, request,
                     has_repeats = HasManyRepeats(numbers)](
                        const TablePlacement& placement,
                        const rpc::MethodCallOptions& call) {
    v1::PullRequest versioned = request;
    versioned.set_version(placement.route.version);
    return state->SendPull(keys, has_repeats, shape, versioned, placement,
                           call);
  };
  const int64_t bytes =
      State::BytesOf(keys.num_elements(), keys.num_elements(), spec().width);
  return state_->EndPull(
      *time, state_->Call<Tensor>(*time, state_->placement(), bytes, send));
}

async::Future<Tensor> Table::State::SendPull(
    const Tensor& keys, bool has_repeats, const tensor::Shape& shape,
    const v1::PullRequest& request, const TablePlacement& placement,
    const rpc::MethodCallOptions& options) const {
  const int64_t width = spec().width;
  if (placement.servers().size() == 1 && !has_repeats) {
    return PullFrom(client(), placement.servers()[0], request, width, keys,
                    options)
        .Then([shape](absl::StatusOr<Tensor> rows) -> absl::StatusOr<Tensor> {
          RETURN_IF_ERROR(rows);
          return rows->Reshape(shape);
        });
  }
  auto ordered = std::make_shared<const OrderedKeys>(Numbers(keys));
  std::vector<async::Future<Tensor>> parts;
  for (const Part& part : Split(placement, *ordered)) {
    parts.push_back(PullFrom(client(), *part.server, request, width,
                             KeysOf(*ordered, part.begin, part.end), options));
  }
  return JoinParts(std::move(parts))
      .Then([ordered = std::move(ordered), shape,
             width](const absl::StatusOr<std::vector<Tensor>>& rows)
                -> absl::StatusOr<Tensor> {
        RETURN_IF_ERROR(rows);
        return ExpandRows(*ordered, *rows, shape, width);
      });
}

absl::StatusOr<Table::State::SentPush> Table::State::SendPush(
    const Tensor& keys, const RowValues& values, v1::PushRequest request,
    RowEncoding encoding) const {
  const bool assigns = request.kind() != v1::UPDATE;
  RETURN_IF_ERROR(CheckKeys(keys));
  ASSIGN_OR_RETURN(RowValues rows,
                   values.Checked(RowsShape(keys, spec().width),
                                  assigns ? "weights" : "gradients"));
  ASSIGN_OR_RETURN(const Tensor dense_keys, keys.Contiguous());
  auto ordered = std::make_shared<const OrderedKeys>(Numbers(dense_keys));
  if (assigns &&
      ordered->keys().size() != static_cast<size_t>(keys.num_elements())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", spec().name, "\": a key is repeated among the ",
        keys.num_elements(), " to which weights are assigned"));
  }
  if (!ordered->in_order()) {
    const Tensor all = rows.Join(0, rows.num_elements());
    const Tensor combined = CombineGradients(*ordered, all, spec().width);
    ASSIGN_OR_RETURN(
        rows, RowValues(combined).Checked(combined.shape(), "gradients"));
  }
  SentPush sent{ordered, {}};
  const TableLocation::Placement placement = this->placement();
  if (!assigns && clock_ != nullptr) {
    ASSIGN_OR_RETURN(sent.time, BeginPush(Split(*placement, *ordered)));
    SetTime(sent.time, request);
  }
  const int64_t num_rows = static_cast<int64_t>(ordered->keys().size());
  sent.rows = Call<std::vector<Tensor>>(
      sent.time, placement,
      BytesOf(num_rows, request.pull() ? 2 * num_rows : num_rows, spec().width),
      [state = shared_from_this(), ordered, rows, request, encoding](
          const TablePlacement& used, const rpc::MethodCallOptions& options) {
        v1::PushRequest versioned = request;
        versioned.set_version(used.route.version);
        return state->SendPushParts(*ordered, rows, encoding, versioned, used,
                                    options);
      });
  return sent;
}

async::Future<std::vector<Tensor>> Table::State::SendPushParts(
    const OrderedKeys& ordered, const RowValues& rows, RowEncoding encoding,
    const v1::PushRequest& request, const TablePlacement& placement,
    const rpc::MethodCallOptions& options) const {
  std::vector<async::Future<Tensor>> replies;
  for (const Part& part : Split(placement, ordered)) {
    const tensor::Shape shape(
        {static_cast<int64_t>(part.end - part.begin), spec().width});
    std::vector<Tensor> tensors =
        EncodeValues(rows, static_cast<int64_t>(part.begin), shape, encoding);
    tensors.insert(tensors.begin(), KeysOf(ordered, part.begin, part.end));
    replies.push_back(client()
                          .CallForTensors(*part.server, kPushMethod, request,
                                          std::move(tensors), options)
                          .Then([shape, pull = request.pull()](
                                    absl::StatusOr<std::vector<Tensor>> reply)
                                    -> absl::StatusOr<Tensor> {
                            RETURN_IF_ERROR(reply);
                            if (!pull) return Tensor();
                            return RowsOfReply(*std::move(reply), shape);
                          }));
  }
  return JoinParts(std::move(replies));
}

async::Future<void> Table::Push(const Tensor& keys, const RowValues& gradients,
                                const PushOptions& options) const {
  absl::StatusOr<State::SentPush> sent = state_->SendPush(
      keys, gradients, state_->NewPush<v1::PushRequest>(options),
      options.encoding);
  if (!sent.ok()) return async::MakeReadyFuture<void>(sent.status());
  return state_->EndPush(sent->time, WithoutRows(std::move(sent->rows)));
}

async::Future<Tensor> Table::PushPull(const Tensor& keys,
                                      const RowValues& gradients,
                                      const PushOptions& options) const {
  auto request = state_->NewPush<v1::PushRequest>(options);
  request.set_pull(true);
  request.set_encoding(ToProto(options.encoding));
  absl::StatusOr<State::SentPush> sent =
      state_->SendPush(keys, gradients, request, options.encoding);
  if (!sent.ok()) return async::MakeReadyFuture<Tensor>(sent.status());
  const int64_t width = spec().width;
  WorkerTime pull_time;
  if (sent->time.joined()) pull_time = state_->BeginPullAfterPush(sent->time);
  async::Future<Tensor> pulled =
      std::move(sent->rows)
          .Then([ordered = std::move(sent->ordered), width,
                 shape = RowsShape(keys, width)](
                    const absl::StatusOr<std::vector<Tensor>>& rows)
                    -> absl::StatusOr<Tensor> {
            RETURN_IF_ERROR(rows);
            if (rows->size() == 1 && ordered->in_order()) {
              return (*rows)[0].Reshape(shape);
            }
            return ExpandRows(*ordered, *rows, shape, width);
          });
  return state_->EndPull(pull_time,
                         state_->EndPush(sent->time, std::move(pulled)));
}

async::Future<void> Table::Assign(const Tensor& keys, const RowValues& weights,
                                  const AssignOptions& options) const {
  auto request = state_->NewPush<v1::PushRequest>({});
  request.set_kind(options.keep_existing ? v1::ASSIGN_MISSING : v1::ASSIGN);
  absl::StatusOr<State::SentPush> sent =
      state_->SendPush(keys, weights, request, RowEncoding::kF32);
  if (!sent.ok()) return async::MakeReadyFuture<void>(sent.status());
  return WithoutRows(std::move(sent->rows));
}

}  // namespace hawser::ps
