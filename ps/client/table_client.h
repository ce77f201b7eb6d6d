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
      return async::MakeReadyFuture<rpc::Message<Reply>>(
          absl::FailedPreconditionError("the worker was shut down"));
    }
    return host->CallMethod(server, method, request, std::move(tensors),
                            options);
  }

  // Returns the result of `send()`, a Future<T>, called once the `bytes` of its
  // request and reply are within the limit. kResourceExhausted: they were not
  // within the timeout of a call.
  template <class T, class Send>
  async::Future<T> CallWithin(int64_t bytes, const Send& send) {
    absl::Duration timeout;
    {
      const rpc::HostHandle::Use host = host_.Acquire();
      if (host) timeout = host->default_timeout();
    }
    if (absl::Status begun = bytes_under_way_->Begin(bytes, timeout);
        !begun.ok()) {
      return async::MakeReadyFuture<T>(std::move(begun));
    }
    async::Future<T> result = send();
    if (result.ready()) {
      bytes_under_way_->End(bytes);
      return result;
    }
    return std::move(result).Then(
        [under_way = bytes_under_way_, bytes](async::Result<T> done) {
          under_way->End(bytes);
          return done;
        });
  }
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
