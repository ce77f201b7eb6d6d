// Interface of services: the layers above an agent.

#ifndef HAWSER_RPC_AGENT_SERVICE_H_
#define HAWSER_RPC_AGENT_SERVICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/message_interceptor.h"

namespace hawser::rpc {

class ServiceHost;

// A layer above the agent, such as references or distributed autograd. Lives as
// long as the agent. The agent calls, in this order:
//
//   Start, message_interceptor, OnWorkerLost any number of times, Drain at most
//   once, OnLeft at most once, Interrupt once, Stop once; the last two also if
//   Start failed.
//
// The agent finds it by type: `agent.service<RRefService>()`.
class Service {
 public:
  virtual ~Service() = default;

  // Name for errors and counters, such as "rref".
  virtual std::string_view name() const = 0;

  // Registers methods, before the agent serves and knows peers. `host` outlives
  // this service. An error fails Agent::Start.
  virtual absl::Status Start(ServiceHost& host) = 0;

  // At most one service of an agent may return an interceptor.
  virtual MessageInterceptor* message_interceptor() { return nullptr; }

  // Calls to this incarnation of `worker` fail from now on: it left, or is
  // lost. Runs on the agent's executor, once per incarnation; not for workers
  // that departed before this one joined and that it never met.
  virtual void OnWorkerLost(const WorkerInfo& worker,
                            const absl::Status& status) {
    (void)worker;
    (void)status;
  }

  // Counters for debugging, such as "owners" -> 3. Called in any thread, at any
  // time after Start.
  virtual std::map<std::string, int64_t> DebugNumbers() const { return {}; }

  // Step of a graceful leave in which users make no more calls, while this
  // service may still make calls; with a world size, all workers are in this
  // step and still serve. If it fails, or does not complete by `deadline`, the
  // leave reports that and continues.
  virtual async::Future<void> Drain(async::MonotonicTime deadline) {
    (void)deadline;
    return async::MakeReadyFuture<void>(absl::OkStatus());
  }

  // The worker has left a job without a world size: calls of users do not begin
  // any more, in either direction, and those that it serves continue. Ends
  // their waits for events that can no longer occur.
  virtual void OnLeft() {}

  // The agent stops: calls do not begin any more, in either direction. Ends the
  // waits of functions that still run.
  virtual void Interrupt() {}

  // The agent does not serve any more, and all calls have ended.
  virtual void Stop() {}
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_SERVICE_H_
