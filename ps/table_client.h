// Calls of one worker to the servers of tables.

#ifndef HAWSER_PS_TABLE_CLIENT_H_
#define HAWSER_PS_TABLE_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "ps/clock/client_clock.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// Is told of lost workers. Thread-safe.
class LossObserver {
 public:
  virtual ~LossObserver() = default;

  virtual void OnWorkerLost(const std::string& worker) = 0;
  // The agent stops.
  virtual void OnStop() = 0;
};

// Shared by the Tables of an agent, and may outlive it. Thread-safe.
class TableClient {
 public:
  explicit TableClient(rpc::ServiceHost& host) : host_(host) {}

  // Time after which a call is sent again: the request or its reply was lost.
  static constexpr absl::Duration kAttemptTimeout = absl::Seconds(10);

  static rpc::MethodCallOptions DefaultOptions() {
    return {.attempt_timeout = kAttemptTimeout, .follow_restarts = true};
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

  // Tells `observer`, while it lives, of all workers that were lost before and
  // that will be.
  void Observe(const std::shared_ptr<LossObserver>& observer);
  void OnWorkerLost(const std::string& worker);
  // Tells `observer` again of the workers that were lost.
  void TellLost(LossObserver& observer);

  // Refuses calls from now on.
  void Stop();

 private:
  std::vector<std::shared_ptr<LossObserver>> Observers();

  rpc::HostHandle host_;
  async::Mutex mutex_;
  std::set<std::string> lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<LossObserver>> observers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> sequences_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<ClientClock>> clocks_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_CLIENT_H_
