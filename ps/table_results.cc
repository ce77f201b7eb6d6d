// Results of read functions: Table::Pull and PullSums with a function.

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
#include "ps/client/table_client.h"
#include "ps/distinct_rows.h"
#include "ps/ordered_keys.h"
#include "ps/read/read_function.h"
#include "ps/route/join_parts.h"
#include "ps/route/table_location.h"
#include "ps/service_methods.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/worker_time.h"
#include "ps/table.h"
#include "ps/table_arguments.h"
#include "ps/table_state.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "tensor/dtype.h"
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

// What one server is asked for.
struct ResultPart {
  const std::string* server;
  // Of the request, without the arguments.
  std::vector<Tensor> tensors;
  int64_t num_results;
};

// Asks for all parts. Returns their results, each f32[num_results, width].
template <class Request, class Reply>
async::Future<std::vector<Tensor>> CallParts(
    TableClient& client, const rpc::ServiceMethod<Request, Reply>& method,
    const Request& request, std::vector<ResultPart> parts,
    const std::vector<Tensor>& arguments,
    const rpc::MethodCallOptions& options) {
  std::vector<async::Future<Tensor>> results;
  for (ResultPart& part : parts) {
    part.tensors.insert(part.tensors.end(), arguments.begin(), arguments.end());
    results.push_back(client
                          .CallForTensors(*part.server, method, request,
                                          std::move(part.tensors), options)
                          .Then([count = part.num_results](
                                    absl::StatusOr<std::vector<Tensor>> reply)
                                    -> absl::StatusOr<Tensor> {
                            RETURN_IF_ERROR(reply);
                            return ResultsOfReply(*std::move(reply), count);
                          }));
  }
  return JoinParts(std::move(results));
}

}  // namespace

// A call of a read function that was begun.
struct Table::State::BegunResults {
  Tensor keys;
  std::vector<Tensor> arguments;
  WorkerTime time;

  // Of the request; the size of the results is not known.
  int64_t bytes() const {
    int64_t bytes = BytesOf(keys.num_elements(), 0, 0);
    for (const Tensor& argument : arguments) {
      bytes += argument.num_elements() * tensor::ItemBytes(argument.dtype());
    }
    return bytes;
  }

  template <class Request>
  Request NewRequest(const TableSpec& spec, const PullOptions& options) const {
    Request request;
    SetTime(time, request);
    request.set_table(spec.name);
    request.set_keep_missing(!options.create_missing);
    request.set_encoding(ToProto(options.encoding));
    request.set_function(options.function);
    return request;
  }
};

absl::StatusOr<Table::State::BegunResults> Table::State::BeginResults(
    const Tensor& keys, const PullOptions& options) const {
  BegunResults begun;
  ASSIGN_OR_RETURN(begun.arguments,
                   CheckArguments(options.function, options.arguments));
  ASSIGN_OR_RETURN(begun.keys, keys.Contiguous());
  ASSIGN_OR_RETURN(begun.time, BeginPull());
  return begun;
}

async::Future<Tensor> Table::State::PullResults(
    const Tensor& keys, const PullOptions& options) const {
  const absl::StatusOr<BegunResults> begun = BeginResults(keys, options);
  if (!begun.ok()) return async::MakeReadyFuture<Tensor>(begun.status());
  auto ordered = std::make_shared<const OrderedKeys>(Numbers(begun->keys));
  const auto send =
      [state = shared_from_this(), ordered, arguments = begun->arguments,
       request = begun->NewRequest<v1::PullRequest>(spec(), options)](
          const TablePlacement& placement, const rpc::MethodCallOptions& call) {
        v1::PullRequest versioned = request;
        versioned.set_version(placement.route.version);
        std::vector<ResultPart> parts;
        for (const Part& part : state->Split(placement, *ordered)) {
          parts.push_back(
              {.server = part.server,
               .tensors = {KeysOf(*ordered, part.begin, part.end)},
               .num_results = static_cast<int64_t>(part.end - part.begin)});
        }
        return CallParts(state->client(), kPullMethod, versioned,
                         std::move(parts), arguments, call);
      };
  return EndPull(
      begun->time,
      Call<std::vector<Tensor>>(begun->time, placement(), begun->bytes(), send)
          .Then([ordered = std::move(ordered), keys = begun->keys](
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
  const absl::StatusOr<BegunResults> begun = BeginResults(keys, options);
  if (!begun.ok()) return async::MakeReadyFuture<Tensor>(begun.status());
  auto request = begun->NewRequest<v1::PullSumsRequest>(spec(), options);
  request.set_num_bags(SumsShape(keys, 1).num_elements());
  const auto send = [state = shared_from_this(), keys = begun->keys,
                     arguments = begun->arguments,
                     request](const TablePlacement& placement,
                              const rpc::MethodCallOptions& call) {
    v1::PullSumsRequest versioned = request;
    versioned.set_version(placement.route.version);
    std::vector<ResultPart> parts;
    for (BagPart& part : state->SplitBags(placement, keys)) {
      parts.push_back({.server = part.server,
                       .tensors = {std::move(part.keys), std::move(part.bags)},
                       .num_results = request.num_bags()});
    }
    return CallParts(state->client(), kPullSumsMethod, versioned,
                     std::move(parts), arguments, call);
  };
  return EndPull(
      begun->time,
      Call<std::vector<Tensor>>(begun->time, placement(), begun->bytes(), send)
          .Then([keys = begun->keys](absl::StatusOr<std::vector<Tensor>> sums)
                    -> absl::StatusOr<Tensor> {
            RETURN_IF_ERROR(sums);
            ASSIGN_OR_RETURN(const int64_t width, WidthOf(*sums));
            const tensor::Shape shape = SumsShape(keys, width);
            if (sums->empty()) return Tensor::Zeros(shape);
            return AddParts(*std::move(sums)).Reshape(shape);
          }));
}

}  // namespace hawser::ps
