// One worker's end of all remote calls.

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

// A worker of a job: calls functions on its peers and serves theirs.
//
// Thread-safe. Several agents can live in one process. No order is promised
// between two calls, also of one pair of workers.
//
// Tensors given as arguments are read when the message is sent: they must not
// be changed until the call's future completes. A function's result must not be
// changed while it is sent.
//
// Callbacks of the futures returned run in a thread of the transport or of the
// agent: one that takes long should go to an executor (Future::Then(executor)).
// A blocking call in one is allowed and costs a thread. Exceptions of callbacks
// end no process (async/exceptions.h).
//
// Errors of calls, each with an ErrorDetail; sync and async alike:
//   kNotFound            no such worker.
//   kFailedPrecondition  the agent was shut down; or this worker was declared
//                        lost and must restart; or the message reached
//                        another incarnation, worker or job than it was for,
//                        which refused it.
//   kUnimplemented       the worker has no such function.
//   kInvalidArgument     the two ends' signatures differ, an argument does not
//                        decode, or the timeout is negative.
//   kPermissionDenied    the function is for workers with other roles.
//   kResourceExhausted   the request is longer than the function takes; or
//                        another limit, of call_quota.h or the transport.
//   kDeadlineExceeded    no reply in time. The callee sees the call cancelled.
//   kUnavailable         the worker is lost or out of reach, or this agent is
//                        stopping.
//   kCancelled           the future was cancelled, or the agent shut down.
//   kInternal            the reply does not decode, or what a function or the
//                        WireTraits of a type threw.
//   Others come from the function called.
// A user call is never sent twice.
class Agent {
 public:
  // Joins the job: starts the services, serves, makes itself known in the
  // store, and, with a world size, waits until all workers have done so.
  //
  //   kInvalidArgument     an option is missing or wrong, naming it; or the
  //                        certificate lacks a role.
  //   kPermissionDenied    the certificate is an observer's.
  //   kAlreadyExists       name or rank is taken, naming the holder, which
  //                        lives. From one that is gone they are taken over,
  //                        within 3 s.
  //   kFailedPrecondition  the job has another world size.
  //   kDeadlineExceeded    workers are missing after start_timeout, naming the
  //                        ranks.
  //   What services, transport and store return.
  static absl::StatusOr<std::unique_ptr<Agent>> Start(AgentOptions options);

  // Shuts down, not gracefully, unless that has been done.
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
    return StartTyped(NewCall(), to, options, function, arguments...);
  }
  template <class R, class... A>
  async::Future<R> Async(const Destination& to,
                         const Function<R(A...)>& function,
                         const std::type_identity_t<A>&... arguments) {
    return Async(to, CallOptions(), function, arguments...);
  }

  // Same, and waits. May be used within a registered function.
  template <class R, class... A>
  async::Result<R> Sync(const Destination& to, const CallOptions& options,
                        const Function<R(A...)>& function,
                        const std::type_identity_t<A>&... arguments) {
    const CallHandle call = NewCall();
    async::Future<R> future =
        StartTyped(call, to, options, function, arguments...);
    if (!future.ready()) AwaitReply(call);
    return std::move(future).Wait();
  }
  template <class R, class... A>
  async::Result<R> Sync(const Destination& to,
                        const Function<R(A...)>& function,
                        const std::type_identity_t<A>&... arguments) {
    return Sync(to, CallOptions(), function, arguments...);
  }

  // --- Who is there.

  const WorkerInfo& info() const;
  const std::string& job() const;
  // All workers known, by rank; with a world size: all.
  std::vector<WorkerInfo> workers() const;
  // kNotFound if nobody in the job is called that. Asks the store, and may so
  // block, for a worker not known yet.
  absl::StatusOr<WorkerInfo> FindWorker(const Destination& worker);
  // Whether that worker was found lost.
  bool IsLost(const WorkerInfo& worker) const;

  // Tells `callback` of all members, each as joined, and then of every change,
  // in the order that all workers see. Runs on the agent's executor, one event
  // at a time; what it calls may block. A member is told of once as joined and
  // once as left or lost, within 500 ms of the store's knowing. Direct contact
  // may show a loss earlier: calls then fail before the event.
  MemberWatch WatchMembers(MemberCallback callback);
  // The callback is not running and will not run after it; so not from it.
  void UnwatchMembers(MemberWatch watch);

  // --- For the layers above.

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

  // --- Numbers.

  TransferTotals transfer_totals() const;
  // Calls made and not ended; a call ends when its future's callbacks have run.
  int64_t num_client_calls() const;
  // Calls that are being served.
  int64_t num_server_calls() const;
  // For people: names and numbers, in decimal digits. What they say is in
  // docs/rpc/introspection.md; they may be of slightly different moments.
  std::map<std::string, std::string> DebugInfo() const;

  // --- The end.

  // Begins to leave the job and returns; completes when this worker may stop,
  // within shutdown_timeout on the agent's clock, or a few seconds later where
  // the store stops to answer. It waits for the own calls, meets all workers in
  // the store, drains the services, and repeats until no worker has made a call
  // in between. Only with a world size do workers wait for each other: without
  // one this worker drains, then refuses what would begin anything here, with
  // kUnavailable, gives its name back, tells the others that it left, and
  // finishes the calls it serves.
  //
  // Also after an error Shutdown is to follow. Later calls join the first;
  // cancelling a future leaves the others alone. May run inside a call, which
  // this worker then finishes; a call that waits for the future waits for
  // itself. Callbacks of the future must not call Shutdown, which then gives
  // kFailedPrecondition.
  //
  //   kUnavailable         a worker was lost meanwhile, naming it.
  //   kDeadlineExceeded    saying what had not ended, or which ranks did not
  //                        come.
  //   kCancelled           Shutdown came first, and was not graceful.
  //   kFailedPrecondition  it was shut down before.
  //   What services and store return.
  async::Future<void> Leave();

  // Graceful: waits for Leave, begun by now or before, and stops, whatever came
  // of it.
  //
  // Not graceful: stops, also in the midst of a graceful one. Peers' calls to
  // this worker fail.
  //
  // After it, every future has completed and nothing of this agent runs.
  // Idempotent: later calls wait for the first and return its result, except
  // that a graceful one which was cut short returns kCancelled, as Leave does.
  // Must not run inside a call, nor in a callback of one: kFailedPrecondition.
  //
  // What Leave returns.
  absl::Status Shutdown(bool graceful = true);

 private:
  using CallHandle = std::shared_ptr<OutgoingCall>;
  // Gets the reply: a decoder on its results, valid in the callback.
  using ReplyCallback = absl::AnyInvocable<void(absl::StatusOr<Decoder*>) &&>;

  explicit Agent(AgentOptions options);

  // Async, of a call that the caller keeps a handle of.
  template <class R, class... A>
  async::Future<R> StartTyped(const CallHandle& call, const Destination& to,
                              const CallOptions& options,
                              const Function<R(A...)>& function,
                              const std::type_identity_t<A>&... arguments) {
    static_assert(std::is_void_v<R> || WireType<R>,
                  "the result cannot travel: use it through a reference");
    async::Promise<R> promise;
    async::Future<R> future = promise.future();
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

  // The part of Async that does not depend on types.
  static CallHandle NewCall();
  // Takes part in the transport's work on the call.
  static void AwaitReply(const CallHandle& call);
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
