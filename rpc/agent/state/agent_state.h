// State that the parts of one agent share.

#ifndef HAWSER_RPC_AGENT_STATE_AGENT_STATE_H_
#define HAWSER_RPC_AGENT_STATE_AGENT_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/executor.h"
#include "async/thread_pool.h"
#include "rpc/agent/state/call_observation.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/in_flight_counter.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_interceptor.h"

namespace hawser::rpc {

class Agent;

// Identity, phase, call counts and executors of an agent. Closures that may
// outlive the agent hold it by shared_ptr and enter gate() first; behind a
// closed gate nothing but the gate and the counters may be used.
//
// Thread-safe. The setters of constants are called before the agent serves.
class AgentState : public std::enable_shared_from_this<AgentState> {
 public:
  // In kLeaving, calls that begin work are rejected and calls in flight end.
  enum class Phase { kNew, kRunning, kLeaving, kStopping, kStopped };

  struct Options {
    // For Encoder, Decoder and CurrentCall; null in tests without an agent.
    Agent* agent = nullptr;
    WorkerInfo self;
    std::string job;
    // Of a call without a timeout of its own.
    absl::Duration default_timeout = absl::Seconds(60);
    // All three must outlive the use of the state behind its gate. The control
    // executor runs the work that keeps this worker a member.
    async::Clock* clock = nullptr;
    async::Executor* executor = nullptr;
    async::Executor* control_executor = nullptr;
    // The executor, if it is the agent's own pool.
    const async::ThreadPool* pool = nullptr;
    CallObservers observers = {};
  };

  explicit AgentState(Options options) : options_(std::move(options)) {}
  AgentState(const AgentState&) = delete;
  AgentState& operator=(const AgentState&) = delete;

  Agent* agent() const { return options_.agent; }
  const WorkerInfo& self() const { return options_.self; }
  const std::string& job() const { return options_.job; }
  absl::Duration default_timeout() const { return options_.default_timeout; }
  async::Clock& clock() const { return *options_.clock; }
  async::Executor& executor() const { return *options_.executor; }
  async::Executor& control_executor() const {
    return *options_.control_executor;
  }
  // The executor, if it is the agent's own pool; otherwise null.
  const async::ThreadPool* pool() const { return options_.pool; }
  const CallObservers& observers() const { return options_.observers; }
  // Null if no service intercepts messages.
  MessageInterceptor* interceptor() const { return interceptor_; }

  void SetRoles(std::vector<std::string> roles) {
    options_.self.roles = std::move(roles);
  }
  void SetAddress(std::string address) {
    options_.self.address = std::move(address);
  }
  void SetInterceptor(MessageInterceptor* interceptor) {
    interceptor_ = interceptor;
  }

  // --- Phase.

  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  void SetPhase(Phase phase) { phase_.store(phase, std::memory_order_release); }
  // Goes from kRunning to kLeaving. False in another phase.
  bool BeginLeaving();

  // Whether this worker was declared lost, so that its process must restart.
  bool fenced() const { return fenced_.load(std::memory_order_acquire); }
  void SetFenced() { fenced_.store(true, std::memory_order_release); }

  // OK while the agent can make and serve calls. kFailedPrecondition if it was
  // shut down or this worker was declared lost; kUnavailable while it stops.
  absl::Status CheckRunning() const;
  // Same, with the ErrorDetail of a call that was not sent.
  absl::Status CheckMayCall() const;
  // Error of a call that came after call_gate() was closed.
  absl::Status CallGateClosed() const;

  // Closed when the agent has stopped.
  Gate& gate() { return gate_; }
  // Entered while a call begins; closed before the transport stops.
  Gate& call_gate() { return call_gate_; }

  // --- Calls.

  // Calls of users and services to peers, in flight.
  InFlightCounter& outbound_calls() { return outbound_calls_; }
  // Calls of peers, being served.
  InFlightCounter& inbound_calls() { return inbound_calls_; }
  // Inbound calls that hold no thread until a future completes.
  std::atomic<int64_t>& async_inbound_calls() { return async_inbound_calls_; }
  // All outbound calls ever begun.
  uint64_t num_calls_made() const {
    return num_calls_made_.load(std::memory_order_relaxed);
  }
  // Counts one in outbound_calls() and in num_calls_made().
  void BeginOutboundCall();

  TransferCounters& transfers() { return transfers_; }

  // --- Execution.

  // Runs `action` on `executor`, unless the agent has stopped by then. The
  // action counts as inside the agent.
  void Post(async::Executor& executor, absl::AnyInvocable<void() &&> action);

  absl::Duration TimeUntil(async::MonotonicTime deadline) const;

  // Marks the calling thread as inside an agent, where Shutdown would deadlock.
  class InsideScope {
   public:
    explicit InsideScope(const AgentState* state)
        : previous_(std::exchange(current_, state)) {}
    ~InsideScope() { current_ = previous_; }
    InsideScope(const InsideScope&) = delete;
    InsideScope& operator=(const InsideScope&) = delete;

    static bool IsInside(const AgentState* state) { return current_ == state; }

   private:
    static thread_local const AgentState* current_;
    const AgentState* const previous_;
  };

 private:
  Options options_;
  MessageInterceptor* interceptor_ = nullptr;
  std::atomic<Phase> phase_{Phase::kNew};
  std::atomic<bool> fenced_{false};
  Gate gate_;
  Gate call_gate_;
  InFlightCounter outbound_calls_;
  InFlightCounter inbound_calls_;
  std::atomic<int64_t> async_inbound_calls_{0};
  std::atomic<uint64_t> num_calls_made_{0};
  TransferCounters transfers_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_STATE_AGENT_STATE_H_
