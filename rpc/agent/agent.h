// Agent: one worker of a job, which calls functions on its peers and serves
// theirs.

#ifndef HAWSER_RPC_AGENT_AGENT_H_
#define HAWSER_RPC_AGENT_AGENT_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/wait_poller.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/service.h"
#include "rpc/functions/function.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/checked_traits.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/reply_completion.h"

namespace hawser::rpc {

class AgentParts;
class OutgoingCall;
class ServiceHost;

// Thread-safe. A process can have several agents. Calls are not ordered, not
// even those between the same two workers.
//
// Tensors passed as arguments are not copied when the call begins: they must
// not be changed until the call's future completes. A function must not change
// its result after it has returned it.
//
// Callbacks of the returned futures run in a thread of the transport or of the
// agent. One that takes long should run on an executor
// (Future::Then(executor)). It may block, which occupies a thread. Exceptions
// thrown by a callback do not end the process (async/exceptions.h).
//
// Errors of calls, synchronous and asynchronous, each with an ErrorDetail:
//   kNotFound            the job does not have that worker.
//   kFailedPrecondition  the agent was shut down; this worker was declared
//                        lost and must restart; or the message reached another
//                        incarnation, worker or job, which rejected it.
//   kUnimplemented       the worker does not have that function.
//   kInvalidArgument     the signatures of the two ends differ, an argument
//                        does not decode, or the timeout is negative.
//   kPermissionDenied    the function is for workers with other roles.
//   kResourceExhausted   the request is larger than the function accepts, or
//                        exceeds a limit of call_quota.h or of the transport.
//   kDeadlineExceeded    the reply did not arrive in time. The callee sees the
//                        call cancelled.
//   kUnavailable         the worker is lost or cannot be reached, or this agent
//                        is stopping.
//   kCancelled           the future was cancelled, or the agent was shut down.
//   kInternal            the reply does not decode, or the function or the
//                        WireTraits of a type threw an exception.
//   Other errors come from the called function.
// A call of a function is sent at most once.
class Agent {
 public:
  // Joins the job: starts the services, serves, registers in the store and,
  // with a world size, waits until all workers have done so.
  //
  //   kInvalidArgument     an option is missing or wrong, naming it; or the
  //                        certificate lacks a role.
  //   kPermissionDenied    the certificate is that of an observer.
  //   kAlreadyExists       a live worker, which is named, has the name or rank.
  //                        Those of a dead worker are taken over within 3 s.
  //   kFailedPrecondition  the job has another world size.
  //   kDeadlineExceeded    workers are missing after start_timeout, naming
  //                        their ranks.
  //   Errors of services, transport and store.
  static absl::StatusOr<std::unique_ptr<Agent>> Start(AgentOptions options);

  // Shuts down, not gracefully, unless the agent was shut down before.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // --- Calls.

  // Calls `function` on worker `to`. The call begins before the return.
  // Cancelling the future cancels the call.
  template <class R, class... A>
  async::Future<R> Async(const Destination& to, const CallOptions& options,
                         const Function<R(A...)>& function,
                         const std::type_identity_t<A>&... arguments) {
    static_assert(std::is_void_v<R> || WireType<R>,
                  "the result cannot travel: use it through a reference");
    const CallHandle call = NewCall();
    async::Promise<R> promise;
    async::Future<R> future = promise.future();
    future.SetWaitPoller(PollerOf(call));
    promise.OnCancel([call] { CancelCall(call); });
    StartCall(
        call, to, options, function.name(), function.Signature(),
        [&](Encoder& encoder) {
          return internal::Encode<A...>(encoder, arguments...);
        },
        [promise = std::move(promise)](absl::StatusOr<Decoder*> reply) mutable {
          internal::CompleteReply(std::move(reply), std::move(promise));
        });
    return future;
  }
  template <class R, class... A>
  async::Future<R> Async(const Destination& to,
                         const Function<R(A...)>& function,
                         const std::type_identity_t<A>&... arguments) {
    return Async(to, CallOptions(), function, arguments...);
  }

  // Same, and waits for the result. May be used within a registered function.
  template <class R, class... A>
  async::Result<R> Sync(const Destination& to, const CallOptions& options,
                        const Function<R(A...)>& function,
                        const std::type_identity_t<A>&... arguments) {
    return Async(to, options, function, arguments...).Wait();
  }
  template <class R, class... A>
  async::Result<R> Sync(const Destination& to,
                        const Function<R(A...)>& function,
                        const std::type_identity_t<A>&... arguments) {
    return Sync(to, CallOptions(), function, arguments...);
  }

  // --- Workers.

  const WorkerInfo& info() const;
  const std::string& job() const;
  // All known workers, ordered by rank; with a world size: all workers.
  std::vector<WorkerInfo> workers() const;
  // kNotFound if the job does not have that worker. For a worker that is not
  // known yet it reads the store, and blocks.
  absl::StatusOr<WorkerInfo> FindWorker(const Destination& worker);
  // Whether this worker treats `worker` as lost.
  bool IsLost(const WorkerInfo& worker) const;

  // Calls `callback` with all current members, each as joined, and then with
  // every change, in the same order at all workers. It runs on the agent's
  // executor, one event at a time, and may block. Every member is reported once
  // as joined and once as left or lost, within 500 ms of the event in the
  // store. A failed heartbeat may reveal a loss earlier: calls then fail before
  // the event is reported.
  MemberWatch WatchMembers(MemberCallback callback);
  // After it returns, the callback is not running and will not run. Must not be
  // called from the callback.
  void UnwatchMembers(MemberWatch watch);

  // --- Services.

  // Calls of protobuf methods, the clock and the executor: rpc/agent/
  // service_host.h. Lives as long as the agent.
  ServiceHost& host() const;

  // The attached service of that class; null if there is none.
  template <class S>
  S* service() const {
    for (Service* candidate : services()) {
      if (auto* found = dynamic_cast<S*>(candidate)) return found;
    }
    return nullptr;
  }

  // --- Counters.

  TransferTotals transfer_totals() const;
  // Number of calls made that have not ended. A call ends when the callbacks of
  // its future have run.
  int64_t num_client_calls() const;
  // Number of calls being served.
  int64_t num_server_calls() const;
  // Counters for debugging, as decimal numbers by name; see
  // docs/rpc/introspection.md. They are read one after another, so they may
  // not be consistent with each other.
  std::map<std::string, std::string> DebugInfo() const;

  // --- Leaving.

  // Begins to leave the job and returns. The future completes when this worker
  // may stop: within shutdown_timeout on the agent's clock, or a few seconds
  // later if the store stops to reply.
  //
  // With a world size, workers wait for each other: all end their calls, meet
  // at a barrier in the store, drain their services, and repeat that until none
  // of them has made a call in between.
  //
  // Without a world size, this worker ends its calls, drains its services,
  // rejects calls that would begin work with kUnavailable, releases its name,
  // notifies its peers, and finishes the calls that it serves.
  //
  // Call Shutdown afterwards, also after an error. Further calls of Leave join
  // the first; cancelling one future does not affect the others. May be called
  // within a served call, which then continues; a served call must not wait for
  // the future. Callbacks of the future must not call Shutdown, which would
  // return kFailedPrecondition.
  //
  //   kUnavailable         a worker, which is named, was lost meanwhile.
  //   kDeadlineExceeded    names the calls or services that have not ended, or
  //                        the ranks that have not arrived.
  //   kCancelled           Shutdown(false) was called.
  //   kFailedPrecondition  the agent was shut down before.
  //   Errors of services and store.
  async::Future<void> Leave();

  // Graceful: waits for Leave, which it begins unless it has begun, and stops,
  // even if Leave failed.
  //
  // Not graceful: stops, and cuts a graceful shutdown in progress short. Calls
  // of peers to this worker fail.
  //
  // After it returns, all futures of this agent have completed and none of its
  // code runs. Idempotent: later calls wait for the first and return its
  // result; a graceful one that was cut short returns kCancelled, as Leave
  // does. kFailedPrecondition within a served call or a callback of a call.
  //
  // Errors of Leave.
  absl::Status Shutdown(bool graceful = true);

 private:
  using CallHandle = std::shared_ptr<OutgoingCall>;
  // Gets the reply: a decoder on its results, valid in the callback.
  using ReplyCallback = absl::AnyInvocable<void(absl::StatusOr<Decoder*>) &&>;

  explicit Agent(AgentOptions options);

  // The part of Async that does not depend on types.
  static CallHandle NewCall();
  static std::shared_ptr<async::WaitPoller> PollerOf(const CallHandle& call);
  static void CancelCall(const CallHandle& call);
  void StartCall(const CallHandle& call, const Destination& to,
                 const CallOptions& options, std::string_view function,
                 std::string_view signature,
                 absl::FunctionRef<absl::Status(Encoder&)> encode,
                 ReplyCallback done);

  const std::vector<Service*>& services() const;

  const std::unique_ptr<AgentParts> parts_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_AGENT_H_
