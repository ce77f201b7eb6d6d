// The inside of an Agent.

#ifndef HAWSER_RPC_AGENT_AGENT_IMPL_H_
#define HAWSER_RPC_AGENT_AGENT_IMPL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/executor.h"
#include "async/mutex.h"
#include "async/serial_queue.h"
#include "async/thread_pool.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method_table.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/member_watches.h"
#include "rpc/membership/membership.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/peers/duplicate_filter.h"
#include "rpc/peers/in_flight_counter.h"
#include "rpc/peers/liveness_monitor.h"
#include "rpc/peers/peer.h"
#include "rpc/peers/peer_table.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {

// Split by operation: agent_lifecycle.cc starts, graceful_leave.cc leaves,
// agent_shutdown.cc stops, agent_members.cc follows who belongs to the job,
// agent_client.cc sends calls, agent_client_replies.cc takes their replies,
// agent_methods.cc sends method calls and tries again, agent_admission.cc and
// agent_permission.cc look at what comes in, agent_server.cc serves it,
// agent_server_replies.cc answers it, agent_debug_info.cc says how things are.
class Agent::Impl final : public ServiceHost {
 public:
  // What closures that may outlive the agent hold.
  struct Shared {
    // Passed by whatever runs later; closed when the agent has stopped.
    Gate gate;
    TransferCounters counters;
    // Calls that are being served.
    InFlightCounter inbound_calls;
    // Of those, the ones for which nothing runs until a future is ready.
    std::atomic<int64_t> num_async_server_calls{0};
  };

  // A message that arrived, with its tensors.
  struct ReceivedMessage {
    IncomingMessage message;
    std::vector<tensor::Tensor> tensors;
  };

  Impl(Agent* agent, AgentOptions options);
  ~Impl() override;

  // --- agent_lifecycle.cc
  absl::Status Start();

  // --- agent_shutdown.cc
  async::Future<void> Leave();
  absl::Status Shutdown(bool graceful);

  // --- agent_members.cc
  MemberWatch WatchMembers(MemberCallback callback);
  void UnwatchMembers(MemberWatch watch);

  // --- agent_client.cc
  void StartCall(const CallHandle& call, const Destination& to,
                 const CallOptions& options, std::string_view function,
                 std::string_view signature,
                 absl::FunctionRef<absl::Status(Encoder&)> encode,
                 ReplyCallback done);
  // Asks the store about a worker that is not known, or lost; not for long, and
  // not beyond `deadline`.
  absl::StatusOr<std::shared_ptr<Peer>> FindPeer(const Destination& to,
                                                 async::MonotonicTime deadline);
  bool IsLost(const WorkerInfo& worker) const override;

  // --- agent_methods.cc
  absl::Status RegisterRawMethod(const MethodName& method,
                                 RawMethodHandler handler,
                                 MethodOptions options) override;
  async::Future<RawMessage> CallRawMethod(
      const Destination& to, const MethodName& method, RawMessage request,
      const MethodCallOptions& options) override;

  // --- agent_server.cc
  async::Future<ErasedValue> Invoke(const RegisteredFunction& function,
                                    Decoder& arguments) override;

  // --- agent_permission.cc
  absl::StatusOr<const RegisteredFunction*> FindFunction(
      const MethodCall& call, std::string_view name,
      std::string_view signature) override;

  const AgentOptions& options() const { return options_; }
  const WorkerInfo& info() const override { return self_; }
  absl::StatusOr<WorkerInfo> FindWorker(const Destination& worker) override;
  async::Clock& clock() const override { return *clock_; }
  async::Executor& executor() const override { return *executor_; }
  absl::Duration default_timeout() const override;
  Agent* agent() const override { return agent_; }
  const std::vector<Service*>& services() const override { return services_; }
  std::vector<WorkerInfo> workers() const override;
  TransferTotals totals() const { return shared_->counters.totals(); }
  int64_t num_client_calls() const { return client_calls_.value(); }
  int64_t num_server_calls() const { return shared_->inbound_calls.value(); }

  // --- agent_debug_info.cc
  std::map<std::string, std::string> DebugInfo() const;

 private:
  class InboundCall;
  class RetryingCall;
  friend class RetryingCall;
  class GracefulLeave;
  friend class GracefulLeave;
  // kLeaving: user calls are refused, those under way end.
  enum class Phase { kNew, kRunning, kLeaving, kStopping, kStopped };

  // A request on its way out.
  struct OutgoingRequest {
    CallHandle call;
    std::shared_ptr<Peer> peer;
    // What is called, for messages: "function 'example.Add'".
    std::string what;
    std::string path;
    std::string body;
    std::vector<tensor::Tensor> tensors;
    bool intercept_messages = false;
    bool at_most_once = false;
    bool heartbeat = false;
    // Whether it was sent before, and may have run then.
    bool attempted = false;
    // Whether the end of the current call ends this one.
    bool inherit_cancellation = true;
    async::MonotonicTime deadline = async::kNever;
  };
  using ReceivedCallback =
      absl::AnyInvocable<void(absl::StatusOr<ReceivedMessage>) &&>;

  // Marks the thread as inside of this agent, where Shutdown would deadlock.
  class InsideScope;

  // --- agent_lifecycle.cc
  absl::Status CheckOptions() const;
  absl::Status StartServices();
  async::Future<RawMessage> ListFunctions() const;
  absl::Status JoinJob();
  std::shared_ptr<Peer> AddPeer(const WorkerInfo& worker);
  std::shared_ptr<Peer> MakePeer(const WorkerInfo& worker);
  void OnPeerLost(const std::shared_ptr<Peer>& peer,
                  const absl::Status& status);
  void Ping(const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
            absl::AnyInvocable<void(absl::Status) &&> done);
  void SendLeave(const std::shared_ptr<Peer>& peer,
                 async::MonotonicTime deadline,
                 absl::AnyInvocable<void(absl::Status) &&> done);
  // A request that is nothing but its header, tried once, also at a peer that
  // has left.
  void SendControl(const std::shared_ptr<Peer>& peer, absl::string_view what,
                   const MethodName& method, async::MonotonicTime deadline,
                   absl::AnyInvocable<void(absl::Status) &&> done);

  // --- agent_shutdown.cc
  bool shutdown_begun() const;
  void AbandonLeave();
  void Stop();

  // --- agent_members.cc
  absl::Status RegisterWorker();
  void MakeMembership();
  void OnMemberEvent(const MemberEvent& event);
  // Asks an address for a heartbeat reply of that worker.
  absl::Status Probe(const WorkerInfo& holder);
  void OnPeerLeft(const std::shared_ptr<Peer>& peer);
  // Whether services may hold anything for `worker`, which is not marked yet:
  // it was a member while this worker is one, or was found in the store, or
  // called. False for one that went before this worker joined.
  bool WasMet(const WorkerInfo& worker) const;
  // It says so itself. Ready when it has no more calls from here.
  async::Future<RawMessage> OnPeerLeaves(const WorkerInfo& worker);
  // A heartbeat for the monitor, which gets its outcome once it is known
  // whether it is this worker that is lost.
  void CheckAlive(const std::shared_ptr<Peer>& peer,
                  async::MonotonicTime deadline,
                  absl::AnyInvocable<void(absl::Status) &&> done);
  // The monitor found it lost.
  void OnPeerSilent(const std::shared_ptr<Peer>& peer,
                    const absl::Status& status);
  void NotifyServices(const std::shared_ptr<Peer>& peer,
                      const absl::Status& status);
  void OnDeclaredLost(const std::string& reason);
  // Gives the name back and says how the worker went.
  absl::Status WithdrawAs(const v1::MembershipEvent& departure);

  // --- agent_methods.cc
  // Ends the method calls that wait to be tried again.
  void AbandonRetryingCalls();

  // --- agent_client.cc
  // kFailedPrecondition or kUnavailable unless calls may be made.
  absl::Status CheckRunning() const;
  // Same, as an error of a call.
  absl::Status CheckMayCall() const;
  // What a call is told that came when none may begin any more.
  absl::Status CallGateClosed() const;
  absl::Duration TimeUntil(async::MonotonicTime deadline) const {
    return async::TimeBetween(clock_->Now(), deadline);
  }
  absl::StatusOr<async::MonotonicTime> DeadlineOf(
      std::optional<absl::Duration> timeout, bool inherit) const;
  // Sends a request; `done` runs once, also for errors, each of which has a
  // detail.
  void Send(OutgoingRequest request, ReceivedCallback done);
  absl::StatusOr<Payload> EncodeRequest(OutgoingRequest& request);
  // Name and incarnation, as far as `to` says them.
  static WorkerInfo WhatIsSaid(const Destination& to);
  absl::StatusOr<std::shared_ptr<Peer>> LookUpPeer(
      const Destination& to, const std::shared_ptr<Peer>& known,
      absl::Duration limit);
  absl::StatusOr<std::optional<WorkerInfo>> AskForWorker(const Destination& to,
                                                         absl::Duration limit);
  void Watch(const std::shared_ptr<Peer>& peer);
  void BeginClientCall();

  // --- agent_client_replies.cc
  void OnReply(const OutgoingRequest& request, absl::StatusOr<Payload> reply,
               ReceivedCallback done);
  static void End(const OutgoingRequest& request,
                  absl::StatusOr<ReceivedMessage> received,
                  ReceivedCallback done);
  absl::StatusOr<ReceivedMessage> ReadReply(const OutgoingRequest& request,
                                            IncomingMessage message);
  // The error of a request that was sent: counts it, and says what it was.
  absl::Status CallError(const OutgoingRequest& request,
                         absl::Status status) const;

  // --- agent_admission.cc
  // Counts the call with `quota`, unless null.
  absl::Status Admit(InboundCall& call, bool begins_work, CallQuota* quota);
  void Refuse(InboundCall& call, absl::Status status, bool at_most_once);
  // The worker that sent a message, if it is known. kUnauthenticated if the
  // incarnation is known to be of a worker of another name.
  absl::StatusOr<std::shared_ptr<Peer>> SenderOf(const RequestHeader& header);
  absl::Status CheckSource(InboundCall& call, const RequestHeader& header,
                           const std::shared_ptr<Peer>& sender);
  absl::Status SourceIsLost(const InboundCall& call) const;
  // `status` with the detail that the call may have run.
  absl::Status MaybeApplied(const InboundCall& call, absl::Status status) const;
  // Looks a sender up that is not known, unless it is no member.
  void LearnAbout(const WorkerInfo& worker);
  // False if it was done a moment ago, or too many are under way.
  bool BeginLookup(const WorkerInfo& worker);

  // --- agent_permission.cc
  // Compares the own roles with the certificate's.
  absl::Status SettleOwnRoles();
  // What FunctionOptions say of a request as long.
  absl::Status CheckPermission(const RegisteredFunction& function,
                               const WorkerInfo& caller,
                               size_t request_bytes) const;
  // Whether nobody has said yet which roles the caller has, but the store may.
  bool MayHaveOtherRoles(const WorkerInfo& caller) const;
  // The same check with the roles that the store says. Blocks.
  absl::Status LookUpPermission(const RegisteredFunction& function,
                                WorkerInfo caller, size_t request_bytes);
  absl::Status CheckObserver(const RegisteredMethod& method,
                             const WorkerInfo& caller) const;

  // --- agent_server.cc
  void OnUserCall(std::unique_ptr<IncomingCall> incoming);
  void OnMethodCall(const RegisteredMethod& method,
                    std::unique_ptr<IncomingCall> incoming);
  // What is left of a call once it may be served.
  void AcceptUserCall(const std::shared_ptr<InboundCall>& call,
                      const RegisteredFunction& function,
                      std::string_view arguments);
  void RunUserCall(const std::shared_ptr<InboundCall>& call,
                   const RegisteredFunction& function,
                   std::string_view arguments);
  void RunMethod(const std::shared_ptr<InboundCall>& call,
                 const RegisteredMethod& method);
  // The decoded tensors and the context to run under.
  absl::StatusOr<std::pair<std::vector<tensor::Tensor>, async::TaskContext>>
  ReadRequest(InboundCall& call);
  async::Executor& ExecutorOf(const RunOn& run_on);

  // Runs `action` on `executor` if this still lives then.
  void Post(async::Executor& executor, absl::AnyInvocable<void() &&> action);

  // --- agent_server_replies.cc
  void FinishUserCall(InboundCall& call, absl::StatusOr<ErasedValue> result);
  void SendReply(InboundCall& call, std::string body,
                 std::vector<tensor::Tensor> tensors);
  void Fail(InboundCall& call, absl::Status status) const;

  Agent* const agent_;
  AgentOptions options_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::unique_ptr<async::RealClock> own_clock_;
  std::unique_ptr<async::ThreadPool> own_pool_;
  std::unique_ptr<async::ThreadPool> own_control_pool_;
  async::Clock* clock_;
  async::Executor* executor_;
  // Keeps this worker a member, and lets it leave, however busy the other is.
  async::Executor* control_executor_;
  // Of calls of functions, and of those of services that do not end where they
  // arrive.
  CallQuota user_quota_;
  CallQuota method_quota_;
  WorkerDirectory worker_directory_;
  MembershipLog membership_log_;

  // Constant once the agent serves.
  WorkerInfo self_;
  std::vector<Service*> services_;
  MessageInterceptor* interceptor_ = nullptr;
  MethodTable methods_;
  bool serving_ = false;
  // How many services Start was called on, and must be stopped.
  size_t num_started_services_ = 0;

  PeerTable peers_;
  DuplicateFilter duplicates_;
  std::unique_ptr<LivenessMonitor> monitor_;
  // There before the transport serves; begins when the worker has joined.
  std::unique_ptr<Membership> membership_;
  std::atomic<bool> joined_{false};
  std::unique_ptr<MemberWatches> watches_;
  // This worker was declared lost and must restart.
  std::atomic<bool> fenced_{false};
  std::atomic<Phase> phase_{Phase::kNew};
  // Passed while a call is begun; closed before the transport stops.
  Gate call_gate_;
  std::atomic<uint64_t> last_call_id_{0};
  // Made and not ended.
  InFlightCounter client_calls_;
  // All calls ever made: whether there was one between two looks.
  std::atomic<uint64_t> num_calls_made_{0};

  mutable async::Mutex mutex_;
  async::CondVar changed_;
  // Once Leave was called.
  std::shared_ptr<GracefulLeave> graceful_leave_ ABSL_GUARDED_BY(mutex_);
  bool shutdown_begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> shutdown_result_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::unique_ptr<async::SerialQueue>> queues_
      ABSL_GUARDED_BY(mutex_);
  // Workers that are lost or have left, in the eyes of this one; of them those
  // whose end the log tells.
  absl::flat_hash_set<Incarnation> lost_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Incarnation> ended_ ABSL_GUARDED_BY(mutex_);
  // Workers that called and were looked up, and when that began.
  absl::flat_hash_map<Incarnation, async::MonotonicTime> non_members_
      ABSL_GUARDED_BY(mutex_);
  int num_lookups_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<std::shared_ptr<RetryingCall>> retrying_calls_
      ABSL_GUARDED_BY(mutex_);
};

class Agent::Impl::InsideScope {
 public:
  explicit InsideScope(const Impl* impl)
      : previous_(std::exchange(current_, impl)) {}
  ~InsideScope() { current_ = previous_; }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;

  static bool IsInside(const Impl* impl) { return current_ == impl; }

 private:
  static thread_local const Impl* current_;
  const Impl* const previous_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_AGENT_IMPL_H_
