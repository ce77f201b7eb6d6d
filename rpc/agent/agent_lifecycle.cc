#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/rpc.pb.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/outgoing_call.h"
#include "rpc/identity/advertised_address.h"

namespace hawser::rpc {
namespace {

constexpr MethodName kCallMethod{"hawser.v1.WorkerService.Call"};
constexpr MethodName kHeartbeatMethod{"hawser.v1.WorkerService.Heartbeat"};
constexpr MethodName kListFunctionsMethod{
    "hawser.v1.WorkerService.ListFunctions"};
constexpr MethodName kLeaveMethod{"hawser.v1.WorkerService.Leave"};
constexpr char kStartedBarrier[] = "started";
constexpr absl::Duration kFirstStartedWait = absl::Seconds(1);

// Those that ask the store: about non-members, for the membership, and to
// leave.
constexpr int kMaxControlThreads = 8;

absl::Status MissingOption(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("AgentOptions::", name, " is required"));
}

}  // namespace

thread_local const Agent::Impl* Agent::Impl::InsideScope::current_ = nullptr;

Agent::Impl::Impl(Agent* agent, AgentOptions options)
    : agent_(agent),
      options_(std::move(options)),
      own_clock_(options_.clock == nullptr
                     ? std::make_unique<async::RealClock>()
                     : nullptr),
      own_pool_(
          options_.executor == nullptr
              ? std::make_unique<async::ThreadPool>(async::ThreadPoolOptions{
                    .num_threads = std::max(1, options_.num_threads),
                    .max_threads = std::max(
                        {2, options_.num_threads + 1, options_.max_threads}),
                    .name = "rpc"})
              : nullptr),
      own_control_pool_(
          options_.executor == nullptr
              ? std::make_unique<async::ThreadPool>(
                    async::ThreadPoolOptions{.num_threads = 1,
                                             .max_threads = kMaxControlThreads,
                                             .name = "rpc-control"})
              : nullptr),
      clock_(own_clock_ != nullptr ? own_clock_.get() : options_.clock),
      executor_(own_pool_ != nullptr ? own_pool_.get() : options_.executor),
      control_executor_(own_control_pool_ != nullptr ? own_control_pool_.get()
                                                     : options_.executor),
      user_quota_(options_.limits),
      method_quota_(options_.limits),
      worker_directory_(options_.store, options_.job),
      membership_log_(options_.store, options_.job),
      watches_(std::make_unique<MemberWatches>(executor_)) {
  self_ = {.name = options_.name,
           .id = WorkerId(options_.rank),
           .incarnation = NewIncarnation(),
           .address = "",
           .roles = options_.roles};
  for (const auto& service : options_.services) {
    services_.push_back(service.get());
  }
}

// Services may still use clock and executor.
Agent::Impl::~Impl() { options_.services.clear(); }

absl::Status Agent::Impl::CheckOptions() const {
  RETURN_IF_ERROR(ValidateWorkerName(options_.name));
  RETURN_IF_ERROR(ValidateWorkerName(options_.job));
  if (options_.store == nullptr) return MissingOption("store");
  if (options_.transport == nullptr) return MissingOption("transport");
  if (options_.registry == nullptr) return MissingOption("registry");
  if (!self_.id.valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("AgentOptions::rank must be 0 to ", WorkerId::kMax,
                     ", not ", options_.rank));
  }
  if (options_.world_size.has_value() &&
      (*options_.world_size < 1 || options_.rank >= *options_.world_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("AgentOptions::rank ", options_.rank,
                     " is not below the world size ", *options_.world_size));
  }
  if (options_.default_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "AgentOptions::default_timeout must be positive");
  }
  if (options_.num_threads < 1) {
    return absl::InvalidArgumentError(
        "AgentOptions::num_threads must be positive");
  }
  RETURN_IF_ERROR(Validate(options_.limits));
  const LivenessOptions& liveness = options_.liveness;
  if (liveness.heartbeat_interval <= absl::ZeroDuration() ||
      liveness.silent_limit <= liveness.heartbeat_interval ||
      liveness.unreachable_limit < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "AgentOptions::liveness needs a positive heartbeat_interval below "
        "silent_limit");
  }
  return absl::OkStatus();
}

async::Future<RawMessage> Agent::Impl::ListFunctions() const {
  v1::ListFunctionsReply reply;
  for (const RegisteredFunction* function : options_.registry->All()) {
    v1::FunctionDescription& description = *reply.add_functions();
    description.set_name(function->name());
    description.set_signature(function->signature());
    const FunctionOptions& options = function->options();
    description.mutable_allowed_roles()->Add(options.allowed_roles.begin(),
                                             options.allowed_roles.end());
    description.set_max_request_bytes(options.max_request_bytes);
  }
  return async::MakeReadyFuture<RawMessage>(
      RawMessage{reply.SerializeAsString(), {}});
}

absl::Status Agent::Impl::StartServices() {
  RETURN_IF_ERROR(methods_.Add(
      kListFunctionsMethod,
      [this](const MethodCall&, const RawMessage&) { return ListFunctions(); },
      {.for_observers = true}));
  RETURN_IF_ERROR(methods_.Add(
      kHeartbeatMethod,
      [](const MethodCall&, const RawMessage&) {
        return async::MakeReadyFuture<RawMessage>(RawMessage());
      },
      {.run_on = RunOn::Inline(), .counted = false, .for_observers = true}));
  RETURN_IF_ERROR(
      methods_.Add(kLeaveMethod,
                   [this](const MethodCall& call, const RawMessage&) {
                     return OnPeerLeaves(call.peer);
                   },
                   {.run_on = RunOn::Inline(), .counted = false}));
  for (Service* service : services_) {
    ++num_started_services_;
    RETURN_IF_ERROR(service->Start(*this));
    if (MessageInterceptor* interceptor = service->message_interceptor();
        interceptor != nullptr) {
      if (interceptor_ != nullptr) {
        return absl::InvalidArgumentError(
            "two services of one agent have a message interceptor");
      }
      interceptor_ = interceptor;
    }
  }
  return absl::OkStatus();
}

// 1. Services register their methods.
// 2. The transport serves; nobody knows yet where.
// 3. The worker makes itself known.
// 4. With a world size: waits until all are known, and until all know all.
absl::Status Agent::Impl::Start() {
  RETURN_IF_ERROR(CheckOptions());
  RETURN_IF_ERROR(SettleOwnRoles());
  RETURN_IF_ERROR(worker_directory_.JoinGroup(options_.world_size));
  monitor_ = std::make_unique<LivenessMonitor>(
      options_.liveness, clock_,
      [this](const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
             absl::AnyInvocable<void(absl::Status) &&> done) {
        CheckAlive(peer, deadline, std::move(done));
      },
      [this](const std::shared_ptr<Peer>& peer, const absl::Status& status) {
        OnPeerSilent(peer, status);
      });
  MakeMembership();
  RETURN_IF_ERROR(StartServices());

  serving_ = true;
  ASSIGN_OR_RETURN(const MethodDefinition* const call_method,
                   kCallMethod.Resolve());
  std::vector<TransportMethod> methods;
  methods.push_back({.path = call_method->path,
                     .handler =
                         [this](std::unique_ptr<IncomingCall> incoming) {
                           OnUserCall(std::move(incoming));
                         },
                     .hot = true});
  for (const RegisteredMethod* method : methods_.All()) {
    methods.push_back(
        {.path = method->definition->path,
         .handler = [this, method](std::unique_ptr<IncomingCall> incoming) {
           OnMethodCall(*method, std::move(incoming));
         }});
  }
  // A peer may call as soon as the worker serves, if it knows the address from
  // elsewhere: it is refused until the address is set.
  ASSIGN_OR_RETURN(
      const std::string address,
      options_.transport->Listen(options_.bind_address, std::move(methods)));
  ASSIGN_OR_RETURN(self_.address,
                   AdvertisedAddress(options_.advertise_address, address));
  phase_.store(Phase::kRunning, std::memory_order_release);
  RETURN_IF_ERROR(JoinJob());
  options_.transport->SetRoles(self_.roles);
  options_.transport->SetServing(true);
  // Unless that was meanwhile.
  if (fenced_.load(std::memory_order_acquire)) {
    options_.transport->SetServing(false);
  }
  return absl::OkStatus();
}

absl::Status Agent::Impl::JoinJob() {
  RETURN_IF_ERROR(RegisterWorker());
  AddPeer(self_);
  joined_.store(true, std::memory_order_release);
  membership_->Start();
  if (!options_.world_size.has_value()) return absl::OkStatus();
  const async::MonotonicTime deadline =
      async::AddDelay(clock_->Now(), options_.start_timeout);
  // One that dies before all have come leaves its record, until another takes
  // its place, for which to look now and then.
  absl::Duration wait = kFirstStartedWait;
  store::Barrier barrier = worker_directory_.BarrierOf(kStartedBarrier);
  for (bool arrived = false;; arrived = true, wait *= 2) {
    ASSIGN_OR_RETURN(const std::vector<WorkerInfo> workers,
                     worker_directory_.AwaitWorkers(*options_.world_size,
                                                    TimeUntil(deadline)));
    std::vector<store::Barrier::Participant> participants;
    for (const WorkerInfo& worker : workers) {
      AddPeer(worker);
      participants.push_back(WorkerDirectory::ParticipantOf(worker));
    }
    if (!arrived) {
      RETURN_IF_ERROR(
          barrier.Arrive(WorkerDirectory::ParticipantOf(self_), ""));
    }
    const absl::Duration left = TimeUntil(deadline);
    absl::Status started = barrier.Await(participants, std::min(wait, left));
    if (wait >= left || !absl::IsDeadlineExceeded(started)) return started;
  }
}

std::shared_ptr<Peer> Agent::Impl::AddPeer(const WorkerInfo& worker) {
  std::shared_ptr<Peer> known = peers_.FindByName(worker.name);
  if (known != nullptr && known->info().incarnation == worker.incarnation) {
    return known;
  }
  const std::shared_ptr<Peer> made = MakePeer(worker);
  std::shared_ptr<Peer> added = peers_.Insert(made);
  // Its end may have been read before it was there to be marked.
  if (added == made && IsLost(worker)) {
    added->MarkLost(absl::UnavailableError(
        absl::StrCat(ToString(worker), " is no member of the job any more")));
  }
  return added;
}

std::shared_ptr<Peer> Agent::Impl::MakePeer(const WorkerInfo& worker) {
  const RequestHeader header{
      .job = options_.job,
      .source = self_.name,
      .source_rank = self_.id,
      .source_incarnation = self_.incarnation,
      .destination = worker.name,
      .destination_incarnation = worker.incarnation,
      .call_id = 0,
      .autograd = std::nullopt,
  };
  return std::make_shared<Peer>(worker, EncodeRequestHeader(header),
                                options_.transport.get());
}

std::vector<WorkerInfo> Agent::Impl::workers() const {
  std::vector<WorkerInfo> workers;
  for (const auto& peer : peers_.All()) workers.push_back(peer->info());
  return workers;
}

void Agent::Impl::Ping(const std::shared_ptr<Peer>& peer,
                       async::MonotonicTime deadline,
                       absl::AnyInvocable<void(absl::Status) &&> done) {
  SendControl(peer, "a heartbeat", kHeartbeatMethod, deadline, std::move(done));
}

void Agent::Impl::SendLeave(const std::shared_ptr<Peer>& peer,
                            async::MonotonicTime deadline,
                            absl::AnyInvocable<void(absl::Status) &&> done) {
  SendControl(peer, "a leave notice", kLeaveMethod, deadline, std::move(done));
}

void Agent::Impl::SendControl(const std::shared_ptr<Peer>& peer,
                              absl::string_view what, const MethodName& method,
                              async::MonotonicTime deadline,
                              absl::AnyInvocable<void(absl::Status) &&> done) {
  Gate::Entry entry(&call_gate_);
  const absl::StatusOr<const MethodDefinition*> definition = method.Resolve();
  if (!entry || !definition.ok()) {
    std::move(done)(absl::CancelledError("the agent is stopping"));
    return;
  }
  OutgoingRequest request;
  request.call = std::make_shared<OutgoingCall>();
  request.peer = peer;
  request.what = std::string(what);
  request.path = (*definition)->path;
  request.heartbeat = true;
  request.inherit_cancellation = false;
  request.deadline = deadline;
  Send(std::move(request),
       [done = std::move(done)](
           const absl::StatusOr<ReceivedMessage>& reply) mutable {
         std::move(done)(reply.status());
       });
}

}  // namespace hawser::rpc
