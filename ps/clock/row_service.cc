#include "ps/clock/row_service.h"

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/clock/clock_gate.h"
#include "ps/clock/clock_server.h"
#include "ps/clock/decoded_push.h"
#include "ps/server/row_requests.h"
#include "ps/server/table_server.h"
#include "ps/service_methods.h"
#include "ps/storage/consistency.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"

namespace hawser::ps {
namespace {

using TablePtr = std::shared_ptr<LoggedTable>;

template <class Reply>
using Result = absl::StatusOr<rpc::Message<Reply>>;
template <class Reply>
using FutureReply = async::Future<rpc::Message<Reply>>;

template <class Request>
WorkerTime TimeOf(const Request& request) {
  return {request.time().join(), request.time().clock()};
}

// Whether an update does not belong to a clock.
bool IsUntimed(const v1::PushRequest& request) {
  return request.kind() != v1::UPDATE;
}
bool IsUntimed(const v1::PushSumsRequest&) { return false; }

bool ReadsRows(const v1::PushRequest& request) { return request.pull(); }
bool ReadsRows(const v1::PushSumsRequest&) { return false; }

absl::Status NoClock(LoggedTable& table) {
  return absl::InvalidArgumentError(absl::StrCat(
      "table \"", table.table().spec().name,
      "\" is asynchronous, but the request has the clock of a worker"));
}

// Serves the requests of one method.
template <class Request, class Reply, class Handler>
class RowMethod {
 public:
  RowMethod(std::shared_ptr<TableServer> tables,
            std::shared_ptr<ClockServer> clocks, async::Executor& executor,
            Handler* handle)
      : tables_(std::move(tables)),
        clocks_(std::move(clocks)),
        executor_(&executor),
        handle_(handle) {}

  FutureReply<Reply> Pull(const rpc::MethodCall& call, Request request) const {
    const absl::StatusOr<TablePtr> table =
        tables_->Find(request.table(), request.version());
    if (!table.ok()) return Failed(table.status());
    if (!request.has_time()) return Ready(Run(*table, call, request));
    const std::shared_ptr<ClockGate> gate = clocks_->GateOf(*table);
    if (gate == nullptr) return Failed(NoClock(**table));
    async::Future<void> ready = gate->AwaitPull(call, TimeOf(request));
    return RunAfter(std::move(ready), *table, call, std::move(request));
  }

  FutureReply<Reply> Push(const rpc::MethodCall& call, Request request) const {
    const absl::StatusOr<TablePtr> table =
        tables_->Find(request.table(), request.version());
    if (!table.ok()) return Failed(table.status());
    const std::shared_ptr<ClockGate> gate = clocks_->GateOf(*table);
    if (gate == nullptr && request.has_time()) return Failed(NoClock(**table));
    if (gate == nullptr || IsUntimed(request)) {
      return Ready(Run(*table, call, request));
    }
    if ((*table)->table().spec().consistency.mode ==
        Consistency::Mode::kSynchronous) {
      return PushAtClock(*gate, *table, call, request);
    }
    const absl::Status status =
        gate->CheckPush(call, request.sequence(), TimeOf(request));
    if (!status.ok()) return Failed(status);
    async::Future<void> ready =
        ReadsRows(request) ? gate->AwaitPull(call, TimeOf(request))
                           : async::MakeReadyFuture<void>(absl::OkStatus());
    FutureReply<Reply> reply =
        RunAfter(std::move(ready), *table, call, std::move(request));
    reply.OnReady([gate](const Result<Reply>&) { gate->Proceed(); });
    return reply;
  }

 private:
  // The handler's reply, or error, which is counted.
  Result<Reply> Run(const TablePtr& table, const rpc::MethodCall& call,
                    const Request& request) const {
    auto result = handle_(*table, tables_->limits(), call, request);
    if constexpr (std::is_same_v<decltype(result), absl::Status>) {
      return Counted(result.ok() ? Result<Reply>(absl::in_place)
                                 : Result<Reply>(std::move(result)));
    } else {
      return Counted(std::move(result));
    }
  }

  // The same once the future is ready, on the executor if that takes time.
  FutureReply<Reply> RunAfter(async::Future<void> ready, const TablePtr& table,
                              const rpc::MethodCall& call,
                              Request request) const {
    if (ready.ready()) {
      const absl::Status status = std::move(ready).Wait();
      if (!status.ok()) return Failed(status);
      return Ready(Run(table, call, request));
    }
    return std::move(ready).Then(
        executor_,
        [method = *this, table, call, request = std::move(request)](
            const absl::Status& status) -> Result<Reply> {
          if (!status.ok()) return method.Counted(status);
          return method.Run(table, call, request);
        });
  }

  // Has the gate apply the push when its clock is complete. The rows of the
  // reply are then those that the next clock sees.
  FutureReply<Reply> PushAtClock(ClockGate& gate, const TablePtr& table,
                                 const rpc::MethodCall& call,
                                 const Request& request) const {
    absl::StatusOr<DecodedPush> push =
        ReadPush(table->table(), tables_->limits(), call, request);
    if (!push.ok()) return Failed(push.status());
    if constexpr (std::is_same_v<Request, v1::PushRequest>) {
      if (ReadsRows(request)) {
        std::vector<uint64_t> keys = push->keys;
        return gate.Push(call, *std::move(push))
            .Then(
                executor_,
                [method = *this, table, keys = std::move(keys),
                 encoding = request.encoding()](
                    const absl::Status& status) -> Result<Reply> {
                  if (!status.ok()) return method.Counted(status);
                  return method.Counted(ReadPushedRows(*table, keys, encoding));
                });
      }
    }
    return gate.Push(call, *std::move(push))
        .Then([method = *this](const absl::Status& status) -> Result<Reply> {
          if (!status.ok()) return method.Counted(status);
          return rpc::Message<Reply>();
        });
  }

  Result<Reply> Counted(Result<Reply> reply) const {
    tables_->refused().Count(reply.status());
    return reply;
  }
  FutureReply<Reply> Failed(const absl::Status& status) const {
    return Ready(Counted(status));
  }
  static FutureReply<Reply> Ready(Result<Reply> reply) {
    return async::MakeReadyFuture<rpc::Message<Reply>>(std::move(reply));
  }

  std::shared_ptr<TableServer> tables_;
  std::shared_ptr<ClockServer> clocks_;
  async::Executor* executor_;
  Handler* handle_;
};

template <class Request, class Reply, class Handler>
absl::Status RegisterPull(rpc::ServiceHost& host,
                          const rpc::ServiceMethod<Request, Reply>& method,
                          RowMethod<Request, Reply, Handler> handler) {
  return host.RegisterMethod(
      method,
      [handler = std::move(handler)](const rpc::MethodCall& call,
                                     rpc::Message<Request> request) {
        return handler.Pull(call, std::move(request.body));
      },
      {.lazy_tensors = true});
}

template <class Request, class Reply, class Handler>
absl::Status RegisterPush(rpc::ServiceHost& host,
                          const rpc::ServiceMethod<Request, Reply>& method,
                          RowMethod<Request, Reply, Handler> handler) {
  return host.RegisterMethod(
      method,
      [handler = std::move(handler)](const rpc::MethodCall& call,
                                     rpc::Message<Request> request) {
        return handler.Push(call, std::move(request.body));
      },
      {.lazy_tensors = true});
}

}  // namespace

absl::Status RegisterRowMethods(rpc::ServiceHost& host,
                                const std::shared_ptr<TableServer>& tables,
                                const std::shared_ptr<ClockServer>& clocks) {
  const auto method = [&]<class Request, class Reply, class Handler>(
                          const rpc::ServiceMethod<Request, Reply>&,
                          Handler* handle) {
    return RowMethod<Request, Reply, Handler>(tables, clocks, host.executor(),
                                              handle);
  };
  RETURN_IF_ERROR(
      RegisterPull(host, kPullMethod, method(kPullMethod, PullRows)));
  RETURN_IF_ERROR(
      RegisterPull(host, kPullSumsMethod, method(kPullSumsMethod, PullSums)));
  RETURN_IF_ERROR(
      RegisterPush(host, kPushMethod, method(kPushMethod, PushRows)));
  return RegisterPush(host, kPushSumsMethod, method(kPushSumsMethod, PushSums));
}

}  // namespace hawser::ps
