// The inbound call that the calling code serves.

#ifndef HAWSER_RPC_AGENT_CURRENT_CALL_H_
#define HAWSER_RPC_AGENT_CURRENT_CALL_H_

#include <memory>
#include <utility>

#include "async/clock.h"
#include "async/task_local.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"

namespace hawser::rpc {

class Agent;

// Set for a registered function or method handler, for the closures that it
// posts, and for its callbacks of futures. Calls made under it inherit its
// deadline and its cancellation.
class CurrentCall {
 public:
  CurrentCall(Agent* agent, WorkerInfo caller, async::MonotonicTime deadline,
              std::shared_ptr<Cancellation> cancellation,
              TraceContext trace = {})
      : agent_(agent),
        caller_(std::move(caller)),
        deadline_(deadline),
        cancellation_(std::move(cancellation)),
        trace_(std::move(trace)) {}

  // Null outside a call. Valid as long as the calling thread's TaskContext.
  static const CurrentCall* Get();

  // The agent that serves the call.
  Agent& agent() const { return *agent_; }
  const WorkerInfo& caller() const { return caller_; }
  // On the clock of agent().host(); kNever if there is none.
  async::MonotonicTime deadline() const { return deadline_; }
  // Whether the caller no longer waits for the result: it cancelled, ended, or
  // its deadline passed. Long functions should check it from time to time.
  bool cancelled() const { return cancellation_->cancelled(); }
  Cancellation& cancellation() const { return *cancellation_; }
  // Trace context of the call; empty if it is not traced. Calls made under it
  // carry the same, unless a CallObserver replaces it.
  const TraceContext& trace() const { return trace_; }

  // Makes `call` the current one of this thread until the end of the scope.
  class Scope;

 private:
  Agent* agent_;
  WorkerInfo caller_;
  async::MonotonicTime deadline_;
  std::shared_ptr<Cancellation> cancellation_;
  TraceContext trace_;
};

namespace internal {
inline constinit const async::TaskLocal<CurrentCall> current_call;
}  // namespace internal

inline const CurrentCall* CurrentCall::Get() {
  return internal::current_call.get();
}

class CurrentCall::Scope {
 public:
  explicit Scope(CurrentCall call)
      : scope_(internal::current_call, std::move(call)) {}

 private:
  async::TaskLocal<CurrentCall>::Scope scope_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_CURRENT_CALL_H_
