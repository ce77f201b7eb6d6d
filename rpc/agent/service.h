// Interface of the layers above an agent.

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

// One layer above the agent, such as references or distributed autograd; lives
// as long as the agent. Calls come in this order:
//
//   Start, message_interceptor, OnWorkerLost any number of times, Drain at most
//   once, OnLeft at most once, Interrupt once, Stop once (both also where Start
//   failed).
//
// The agent finds it by type: `agent.service<RRefService>()`.
class Service {
 public:
  virtual ~Service() = default;

  // "rref", for messages.
  virtual std::string_view name() const = 0;

  // Registers methods. Nothing is served and no peer is known yet. `host`
  // outlives this service. An error fails the agent's start.
  virtual absl::Status Start(ServiceHost& host) = 0;

  // At most one service of an agent has a hook.
  virtual MessageInterceptor* message_interceptor() { return nullptr; }

  // `worker` is dead or out of reach for good: calls to this incarnation fail
  // from now on. Runs on the agent's executor, once per incarnation, and not
  // for workers that went before this one joined and that it never met.
  virtual void OnWorkerLost(const WorkerInfo& worker,
                            const absl::Status& status) {
    (void)worker;
    (void)status;
  }

  // What it holds for others and of theirs, for people: "owners" -> 3. In any
  // thread, at any time after Start.
  virtual std::map<std::string, int64_t> DebugNumbers() const { return {}; }

  // One step of a graceful shutdown: all workers are here, all still serve,
  // and users make no more calls. Calls may still be made by this service. An
  // error, or not completing by `deadline`, is reported by the shutdown, which
  // goes on.
  virtual async::Future<void> Drain(async::MonotonicTime deadline) {
    (void)deadline;
    return async::MakeReadyFuture<void>(absl::OkStatus());
  }

  // The worker has left a job without a world size: users' calls begin no more,
  // in either direction, and those that it serves go on. Ends what these would
  // wait for in vain.
  virtual void OnLeft() {}

  // No call begins any more, in either direction: ends what functions that
  // still run here wait for.
  virtual void Interrupt() {}

  // Nothing is served any more and all calls have ended.
  virtual void Stop() {}
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_SERVICE_H_
