// Rows of keys: Table::Pull and Push.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/distinct_rows.h"
#include "ps/ordered_keys.h"
#include "ps/service_methods.h"
#include "ps/table.h"
#include "ps/table_arguments.h"
#include "ps/table_client.h"
#include "ps/table_state.h"
#include "rpc/functions/method.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

Tensor KeysOf(const OrderedKeys& ordered, size_t begin, size_t end) {
  Tensor keys = Tensor::Empty({static_cast<int64_t>(end - begin)},
                              {.dtype = tensor::DType::kI64});
  std::memcpy(keys.raw_data(), &ordered.keys()[begin],
              (end - begin) * sizeof(uint64_t));
  return keys;
}

// Returns the rows of `keys`, i64[n], from `server`.
async::Future<Tensor> PullFrom(const TableSpec& spec, TableClient& client,
                               const std::string& server, Tensor keys,
                               const PullOptions& options) {
  v1::PullRequest request;
  request.set_table(spec.name);
  request.set_keep_missing(!options.create_missing);
  const tensor::Shape shape({keys.num_elements(), spec.width});
  return client.Call(server, kPullMethod, request, {std::move(keys)})
      .Then([shape](absl::StatusOr<rpc::Message<v1::PullReply>> reply)
                -> absl::StatusOr<Tensor> {
        RETURN_IF_ERROR(reply);
        return OnlyRows(std::move(reply->tensors), shape);
      });
}

}  // namespace

async::Future<Tensor> Table::Pull(const Tensor& keys,
                                  const PullOptions& options) const {
  if (absl::Status status = CheckKeys(keys); !status.ok()) {
    return async::MakeReadyFuture<Tensor>(std::move(status));
  }
  absl::StatusOr<Tensor> flat = keys.Reshape({keys.num_elements()});
  if (flat.ok()) flat = flat->Contiguous();
  if (!flat.ok()) return async::MakeReadyFuture<Tensor>(flat.status());
  const tensor::Shape shape = RowsShape(keys, spec().width);
  const std::span<const uint64_t> numbers = Numbers(std::as_const(*flat));
  if (servers().size() == 1 && !HasManyRepeats(numbers)) {
    return PullFrom(spec(), state_->client(), servers()[0], *std::move(flat),
                    options)
        .Then([shape](absl::StatusOr<Tensor> rows) -> absl::StatusOr<Tensor> {
          RETURN_IF_ERROR(rows);
          return rows->Reshape(shape);
        });
  }
  auto ordered = std::make_shared<const OrderedKeys>(numbers);
  std::vector<async::Future<Tensor>> parts;
  for (const State::Part& part : state_->Split(*ordered)) {
    parts.push_back(PullFrom(spec(), state_->client(), *part.server,
                             KeysOf(*ordered, part.begin, part.end), options));
  }
  return async::JoinAll(std::move(parts))
      .Then([ordered = std::move(ordered), shape, width = spec().width](
                const absl::StatusOr<std::vector<Tensor>>& rows)
                -> absl::StatusOr<Tensor> {
        RETURN_IF_ERROR(rows);
        return ExpandRows(*ordered, *rows, shape, width);
      });
}

async::Future<void> Table::Push(const Tensor& keys, const Tensor& gradients,
                                const PushOptions& options) const {
  const auto failed = [](absl::Status status) {
    return async::MakeReadyFuture<void>(std::move(status));
  };
  if (absl::Status status = CheckKeys(keys); !status.ok()) {
    return failed(std::move(status));
  }
  const tensor::Shape expected = RowsShape(keys, spec().width);
  if (absl::Status status = CheckGradients(gradients, expected); !status.ok()) {
    return failed(std::move(status));
  }
  absl::StatusOr<Tensor> dense_keys = keys.Contiguous();
  absl::StatusOr<Tensor> dense = gradients.Contiguous();
  if (!dense_keys.ok()) return failed(dense_keys.status());
  if (!dense.ok()) return failed(dense.status());
  const OrderedKeys ordered(Numbers(std::as_const(*dense_keys)));
  const int64_t width = spec().width;
  Tensor rows;
  if (ordered.in_order()) {
    absl::StatusOr<Tensor> matrix =
        dense->Detach().Reshape({dense_keys->num_elements(), width});
    if (!matrix.ok()) return failed(matrix.status());
    rows = *std::move(matrix);
  } else {
    rows = CombineGradients(ordered, *dense, width);
  }
  const auto request = state_->NewPush<v1::PushRequest>(options);
  std::vector<async::Future<rpc::Message<v1::PushReply>>> replies;
  for (const State::Part& part : state_->Split(ordered)) {
    absl::StatusOr<Tensor> part_rows =
        rows.Narrow(0, static_cast<int64_t>(part.begin),
                    static_cast<int64_t>(part.end - part.begin));
    if (!part_rows.ok()) return failed(part_rows.status());
    replies.push_back(state_->client().Call(
        *part.server, kPushMethod, request,
        {KeysOf(ordered, part.begin, part.end), *std::move(part_rows)}));
  }
  return AllDone(std::move(replies));
}

}  // namespace hawser::ps
