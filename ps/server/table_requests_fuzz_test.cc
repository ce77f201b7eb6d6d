// Any bytes as a request for rows of a table. The first byte chooses the
// method.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "optim/schedule_spec.h"
#include "proto/ps.pb.h"
#include "ps/read/read_function.h"
#include "ps/server/row_requests.h"
#include "ps/server/table_server.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table_limits.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/lazy_tensor.h"
#include "rpc/wire/message_codec.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// The dot product of a row and the argument.
absl::StatusOr<ReadFunction> MakeDot(const TableSpec& table,
                                     std::span<const Tensor> arguments) {
  if (arguments.size() != 1 || arguments[0].num_elements() != table.width) {
    return absl::InvalidArgumentError("dot takes one f32[width]");
  }
  return ReadFunction{.width = 1,
                      .read = [query = arguments[0]](const RowView& row,
                                                     std::span<float> result) {
                        const float* const q = query.data<float>();
                        for (size_t i = 0; i < row.weights.size(); ++i) {
                          result[0] += row.weights[i] * q[i];
                        }
                      }};
}

TableServer& Server() {
  static TableServer& server = [&]() -> TableServer& {
    auto& created = *new TableServer({.max_keys = 1000, .max_row_bytes = 65536},
                                     "", PushLogging::kOff);
    HAWSER_CHECK(RegisterReadFunction("dot", MakeDot).ok()) << "the function";
    v1::CreateTableRequest request;
    *request.mutable_table() = ToProto(
        TableSpec{.name = "t",
                  .width = 2,
                  .rule = {"SGD", {{"lr", 0.1}}},
                  .schedule = optim::ScheduleSpec::Exponential({.gamma = 0.5}),
                  .key_ranges = {{.first = 1, .last = 1}}});
    request.mutable_shards()->set_num_shards(1024);
    HAWSER_CHECK(created.Create(request).ok()) << "the table";
    return created;
  }();
  return server;
}

template <class Request>
bool Parse(std::string_view body, Request& request) {
  return request.ParseFromArray(body.data(), static_cast<int>(body.size()));
}

void Serve(uint8_t method, std::string_view body, const rpc::MethodCall& call) {
  absl::Status status;
  const TableLimits& limits = Server().limits();
  const std::shared_ptr<LoggedTable> table = *Server().Find("t", /*version=*/0);
  if (method % 4 == 0) {
    v1::PullRequest request;
    if (Parse(body, request)) {
      status = PullRows(*table, limits, call, request).status();
    }
  } else if (method % 4 == 1) {
    v1::PushRequest request;
    if (Parse(body, request)) {
      status = PushRows(*table, limits, call, request).status();
    }
  } else if (method % 4 == 2) {
    v1::PullSumsRequest request;
    if (Parse(body, request)) {
      status = PullSums(*table, limits, call, request).status();
    }
  } else {
    v1::PushSumsRequest request;
    if (Parse(body, request)) status = PushSums(*table, limits, call, request);
  }
  HAWSER_CHECK(!absl::IsInternal(status) && !absl::IsUnknown(status))
      << status.message();
}

}  // namespace
}  // namespace hawser::ps

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hawser::rpc::IncomingMessage;
  if (size == 0) return 0;
  auto parsed = IncomingMessage::Parse(hawser::rpc::Payload(
      std::string(reinterpret_cast<const char*>(data) + 1, size - 1)));
  if (!parsed.ok()) return 0;
  auto message = std::make_shared<const IncomingMessage>(*std::move(parsed));
  auto tensors = hawser::rpc::LazyTensorsOf(
      message, std::make_shared<hawser::rpc::TransferCounters>());
  if (!tensors.ok()) return 0;
  hawser::rpc::MethodCall call;
  call.peer.incarnation = hawser::rpc::Incarnation{1};
  call.tensors = *std::move(tensors);
  hawser::ps::Serve(data[0], message->body(), call);
  return 0;
}
