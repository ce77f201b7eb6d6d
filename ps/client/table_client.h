// Calls of one worker to the servers of tables.

#ifndef HAWSER_PS_CLIENT_TABLE_CLIENT_H_
#define HAWSER_PS_CLIENT_TABLE_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "ps/client/bytes_under_way.h"
#include "ps/clock/client_clock.h"
#include "ps/route/table_moves.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// Shared by the Tables of an agent, and may outlive it. Thread-safe.
class TableClient {
 public:
  TableClient(rpc::ServiceHost& host, int64_t max_bytes_under_way);

  // Time after which a call is sent again: the request or its reply was lost.
  static constexpr absl::Duration kAttemptTimeout = absl::Seconds(10);

  static rpc::MethodCallOptions DefaultOptions() {
    return {.attempt_timeout = kAttemptTimeout,
            .follow_restarts = true,
            .in_place_reply = true};
  }

  // Calls a method of the worker `server`. Errors are those of rpc::Agent, and
  // kFailedPrecondition: the agent was shut down.
  template <class Request, class Reply>
  async::Future<rpc::Message<Reply>> Call(
      const std::string& server,
      const rpc::ServiceMethod<Request, Reply>& method,
      const std::type_identity_t<Request>& request,
      std::vector<tensor::Tensor> tensors = {},
      const rpc::MethodCallOptions& options = DefaultOptions()) {
    const rpc::HostHandle::Use host = host_.Acquire();
    if (!host) {
      return async::MakeReadyFuture<rpc::Message<Reply>>(WasShutDown());
    }
    return host->CallMethod(server, method, request, std::move(tensors),
                            options);
  }

  // The same for a method whose reply has nothing but tensors, which it
  // returns.
  template <class Request, class Reply>
  async::Future<std::vector<tensor::Tensor>> CallForTensors(
      const std::string& server,
      const rpc::ServiceMethod<Request, Reply>& method,
      const std::type_identity_t<Request>& request,
      std::vector<tensor::Tensor> tensors,
      const rpc::MethodCallOptions& options) {
    const rpc::HostHandle::Use host = host_.Acquire();
    if (!host) {
      return async::MakeReadyFuture<std::vector<tensor::Tensor>>(WasShutDown());
    }
    return host->CallForTensors(server, method, request, std::move(tensors),
                                options);
  }

  // Waits until the `bytes` of a request and its reply are within the limit.
  // kResourceExhausted: they were not within the timeout of a call.
  absl::StatusOr<HeldBytes> HoldBytes(int64_t bytes);
  int64_t bytes_under_way() const { return bytes_under_way_->bytes(); }

  // The number of the next push of this worker to `table`, from 1 on.
  uint64_t NextSequence(const std::string& table) {
    const async::MutexLock lock(&mutex_);
    return ++sequences_[table];
  }

  // The agent's interface for services while the result lives; false if the
  // agent was shut down.
  rpc::HostHandle::Use Acquire() { return host_.Acquire(); }

  // The clock of this worker at `table`.
  std::shared_ptr<ClientClock> ClockOf(const std::string& table) {
    const async::MutexLock lock(&mutex_);
    std::shared_ptr<ClientClock>& clock = clocks_[table];
    if (clock == nullptr) clock = std::make_shared<ClientClock>();
    return clock;
  }

  // The tables of this worker that lost servers hold.
  TableMoves& moves() { return *moves_; }

  // Refuses calls from now on.
  void Stop();

 private:
  static absl::Status WasShutDown();

  rpc::HostHandle host_;
  const std::shared_ptr<BytesUnderWay> bytes_under_way_;
  const std::shared_ptr<TableMoves> moves_;
  async::Mutex mutex_;
  std::map<std::string, uint64_t> sequences_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<ClientClock>> clocks_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLIENT_TABLE_CLIENT_H_
