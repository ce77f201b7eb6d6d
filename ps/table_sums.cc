// Sums of the rows of bags of keys: Table::PullSums and PushSums.

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/client/table_client.h"
#include "ps/distinct_rows.h"
#include "ps/route/join_parts.h"
#include "ps/route/table_location.h"
#include "ps/row_encoding.h"
#include "ps/service_methods.h"
#include "ps/storage/worker_time.h"
#include "ps/table.h"
#include "ps/table_arguments.h"
#include "ps/table_state.h"
#include "rpc/functions/method.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

async::Future<Tensor> Table::PullSums(const Tensor& keys,
                                      const PullOptions& options) const {
  if (absl::Status status = CheckBags(keys); !status.ok()) {
    return async::MakeReadyFuture<Tensor>(std::move(status));
  }
  if (CallsFunction(options)) return state_->PullSumsOfResults(keys, options);
  absl::StatusOr<Tensor> dense = keys.Contiguous();
  if (!dense.ok()) return async::MakeReadyFuture<Tensor>(dense.status());
  const tensor::Shape shape = SumsShape(keys, spec().width);
  const tensor::Shape sums({shape.num_elements() / spec().width, spec().width});
  v1::PullSumsRequest request;
  request.set_table(spec().name);
  request.set_num_bags(sums[0]);
  request.set_keep_missing(!options.create_missing);
  request.set_encoding(ToProto(options.encoding));
  const absl::StatusOr<WorkerTime> time = state_->BeginPull();
  if (!time.ok()) return async::MakeReadyFuture<Tensor>(time.status());
  SetTime(*time, request);
  const auto send = [state = state_, keys = *std::move(dense), sums, request](
                        const TablePlacement& placement,
                        const rpc::MethodCallOptions& call) {
    v1::PullSumsRequest versioned = request;
    versioned.set_version(placement.route.version);
    std::vector<async::Future<Tensor>> parts;
    for (State::BagPart& part : state->SplitBags(placement, keys)) {
      parts.push_back(
          RowsOfReply(state->client().CallForTensors(
                          *part.server, kPullSumsMethod, versioned,
                          {std::move(part.keys), std::move(part.bags)}, call),
                      sums));
    }
    return JoinParts(std::move(parts));
  };
  const int64_t bytes =
      State::BytesOf(keys.num_elements(), sums[0], spec().width);
  return state_->EndPull(
      *time,
      state_->Call<std::vector<Tensor>>(*time, state_->placement(), bytes, send)
          .Then([shape](absl::StatusOr<std::vector<Tensor>> rows)
                    -> absl::StatusOr<Tensor> {
            RETURN_IF_ERROR(rows);
            if (rows->empty()) return Tensor::Zeros(shape);
            return AddParts(*std::move(rows)).Reshape(shape);
          }));
}

async::Future<void> Table::PushSums(const Tensor& keys, const Tensor& gradients,
                                    const PushOptions& options) const {
  const auto failed = [](absl::Status status) {
    return async::MakeReadyFuture<void>(std::move(status));
  };
  if (absl::Status status = CheckBags(keys); !status.ok()) {
    return failed(std::move(status));
  }
  const tensor::Shape expected = SumsShape(keys, spec().width);
  if (absl::Status status = CheckRows(gradients, expected); !status.ok()) {
    return failed(std::move(status));
  }
  absl::StatusOr<Tensor> dense_keys = keys.Contiguous();
  if (!dense_keys.ok()) return failed(dense_keys.status());
  absl::StatusOr<Tensor> rows = gradients.Detach().Reshape(
      {expected.num_elements() / spec().width, spec().width});
  if (rows.ok()) rows = rows->Contiguous();
  if (!rows.ok()) return failed(rows.status());
  const std::vector<Tensor> encoded = EncodeRows(*rows, options.encoding);
  auto request = state_->NewPush<v1::PushSumsRequest>(options);
  const TableLocation::Placement placement = state_->placement();
  WorkerTime time;
  if (state_->clock() != nullptr) {
    const absl::StatusOr<WorkerTime> begun =
        state_->BeginPush(state_->SplitBags(*placement, *dense_keys));
    if (!begun.ok()) return failed(begun.status());
    time = *begun;
  }
  SetTime(time, request);
  const auto send = [state = state_, keys = *std::move(dense_keys), encoded,
                     request](const TablePlacement& used,
                              const rpc::MethodCallOptions& call) {
    v1::PushSumsRequest versioned = request;
    versioned.set_version(used.route.version);
    std::vector<async::Future<void>> replies;
    for (State::BagPart& part : state->SplitBags(used, keys)) {
      std::vector<Tensor> tensors = {std::move(part.keys),
                                     std::move(part.bags)};
      tensors.insert(tensors.end(), encoded.begin(), encoded.end());
      replies.push_back(WithoutRows(state->client().CallForTensors(
          *part.server, kPushSumsMethod, versioned, std::move(tensors), call)));
    }
    return JoinParts(std::move(replies));
  };
  const int64_t bytes =
      State::BytesOf(keys.num_elements(), rows->dim(0), spec().width);
  return state_->EndPush(time,
                         state_->Call<void>(time, placement, bytes, send));
}

}  // namespace hawser::ps
