// Results of read functions: Table::Pull and PullSums with a function.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/distinct_rows.h"
#include "ps/ordered_keys.h"
#include "ps/read/read_function.h"
#include "ps/route/join_parts.h"
#include "ps/route/table_location.h"
#include "ps/service_methods.h"
#include "ps/storage/worker_clocks.h"
#include "ps/table.h"
#include "ps/table_arguments.h"
#include "ps/table_client.h"
#include "ps/table_state.h"
#include "rpc/functions/method.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// The results in the tensors of a reply, f32[num_rows, width]: the width is
// that of the function. kInternal: a server has sent other tensors.
absl::StatusOr<Tensor> ResultsOfReply(std::vector<Tensor> tensors,
                                      int64_t num_rows) {
  if (tensors.empty() || tensors[0].rank() != 2 ||
      tensors[0].dim(1) > ReadFunction::kMaxWidth) {
    return absl::InternalError("a server has sent a reply without results");
  }
  const int64_t width = tensors[0].dim(1);
  return RowsOfReply(std::move(tensors), tensor::Shape({num_rows, width}));
}

// The width of all results; 0 if there are none.
absl::StatusOr<int64_t> WidthOf(const std::vector<Tensor>& parts) {
  const int64_t width = parts.empty() ? 0 : parts[0].dim(1);
  for (const Tensor& part : parts) {
    if (part.dim(1) == width) continue;
    return absl::InternalError(absl::StrCat(
        "servers have sent results of ", width, " and of ", part.dim(1),
        " numbers: they have different functions of this name"));
  }
  return width;
}

template <class Request>
Request NewRequest(const std::string& table, const PullOptions& options,
                   WorkerTime time) {
  Request request;
  SetTime(time, request);
  request.set_table(table);
  request.set_keep_missing(!options.create_missing);
  request.set_encoding(ToProto(options.encoding));
  request.set_function(options.function);
  return request;
}

// The tensors of a request.
std::vector<Tensor> WithArguments(std::vector<Tensor> tensors,
                                  const std::vector<Tensor>& arguments) {
  tensors.insert(tensors.end(), arguments.begin(), arguments.end());
  return tensors;
}

}  // namespace

async::Future<Tensor> Table::State::PullResults(
    const Tensor& keys, const PullOptions& options) const {
  const absl::StatusOr<std::vector<Tensor>> arguments =
      CheckArguments(options.function, options.arguments);
  if (!arguments.ok()) {
    return async::MakeReadyFuture<Tensor>(arguments.status());
  }
  const absl::StatusOr<Tensor> dense = keys.Contiguous();
  if (!dense.ok()) return async::MakeReadyFuture<Tensor>(dense.status());
  const absl::StatusOr<WorkerTime> time = BeginPull();
  if (!time.ok()) return async::MakeReadyFuture<Tensor>(time.status());
  auto ordered = std::make_shared<const OrderedKeys>(Numbers(*dense));
  const auto request = NewRequest<v1::PullRequest>(spec().name, options, *time);
  const auto send = [state = shared_from_this(), ordered,
                     arguments = *arguments,
                     request](const TablePlacement& placement,
                              const rpc::MethodCallOptions& call) {
    v1::PullRequest versioned = request;
    versioned.set_version(placement.route.version);
    std::vector<async::Future<Tensor>> parts;
    for (const Part& part : state->Split(placement, *ordered)) {
      const auto count = static_cast<int64_t>(part.end - part.begin);
      parts.push_back(
          state->client()
              .Call(*part.server, kPullMethod, versioned,
                    WithArguments({KeysOf(*ordered, part.begin, part.end)},
                                  arguments),
                    call)
              .Then([count](absl::StatusOr<rpc::Message<v1::PullReply>> reply)
                        -> absl::StatusOr<Tensor> {
                RETURN_IF_ERROR(reply);
                return ResultsOfReply(std::move(reply->tensors), count);
              }));
    }
    return JoinParts(std::move(parts));
  };
  return EndPull(
      *time, Call<std::vector<Tensor>>(*time, placement(), send)
                 .Then([ordered = std::move(ordered), keys = *dense](
                           const absl::StatusOr<std::vector<Tensor>>& results)
                           -> absl::StatusOr<Tensor> {
                   RETURN_IF_ERROR(results);
                   ASSIGN_OR_RETURN(const int64_t width, WidthOf(*results));
                   return ExpandRows(*ordered, *results, RowsShape(keys, width),
                                     width);
                 }));
}

async::Future<Tensor> Table::State::PullSumsOfResults(
    const Tensor& keys, const PullOptions& options) const {
  const absl::StatusOr<std::vector<Tensor>> arguments =
      CheckArguments(options.function, options.arguments);
  if (!arguments.ok()) {
    return async::MakeReadyFuture<Tensor>(arguments.status());
  }
  const absl::StatusOr<Tensor> dense = keys.Contiguous();
  if (!dense.ok()) return async::MakeReadyFuture<Tensor>(dense.status());
  const absl::StatusOr<WorkerTime> time = BeginPull();
  if (!time.ok()) return async::MakeReadyFuture<Tensor>(time.status());
  auto request = NewRequest<v1::PullSumsRequest>(spec().name, options, *time);
  const int64_t num_bags = SumsShape(keys, 1).num_elements();
  request.set_num_bags(num_bags);
  const auto send = [state = shared_from_this(), keys = *dense, num_bags,
                     arguments = *arguments,
                     request](const TablePlacement& placement,
                              const rpc::MethodCallOptions& call) {
    v1::PullSumsRequest versioned = request;
    versioned.set_version(placement.route.version);
    std::vector<async::Future<Tensor>> parts;
    for (BagPart& part : state->SplitBags(placement, keys)) {
      parts.push_back(
          state->client()
              .Call(*part.server, kPullSumsMethod, versioned,
                    WithArguments({std::move(part.keys), std::move(part.bags)},
                                  arguments),
                    call)
              .Then([num_bags](absl::StatusOr<rpc::Message<v1::PullSumsReply>>
                                   reply) -> absl::StatusOr<Tensor> {
                RETURN_IF_ERROR(reply);
                return ResultsOfReply(std::move(reply->tensors), num_bags);
              }));
    }
    return JoinParts(std::move(parts));
  };
  return EndPull(
      *time,
      Call<std::vector<Tensor>>(*time, placement(), send)
          .Then([keys = *dense](const absl::StatusOr<std::vector<Tensor>>& sums)
                    -> absl::StatusOr<Tensor> {
            RETURN_IF_ERROR(sums);
            ASSIGN_OR_RETURN(const int64_t width, WidthOf(*sums));
            Tensor total = Tensor::Zeros(SumsShape(keys, width));
            float* const to = total.data<float>();
            for (const Tensor& part : *sums) {
              const float* const from = part.data<float>();
              for (int64_t k = 0; k < total.num_elements(); ++k) {
                to[k] += from[k];
              }
            }
            return total;
          }));
}

}  // namespace hawser::ps
