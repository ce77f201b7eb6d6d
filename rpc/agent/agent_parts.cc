#include "rpc/agent/agent_parts.h"

#include <utility>

#include "async/blocking_region.h"
#include "async/exceptions.h"
#include "async/status_macros.h"
#include "rpc/agent/register_worker_methods.h"
#include "rpc/agent/settle_roles.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/advertised_address.h"

namespace hawser::rpc {
namespace {

Incarnation IncarnationOf(const AgentOptions& options) {
  return options.incarnation == Incarnation{} ? NewIncarnation()
                                              : options.incarnation;
}

}  // namespace

AgentParts::AgentParts(Agent* agent, AgentOptions options)
    : options_(std::move(options)),
      threads_(options_),
      state_(std::make_shared<AgentState>(
          AgentState::Options{.agent = agent,
                              .self = {.name = options_.name,
                                       .id = WorkerId(options_.rank),
                                       .incarnation = IncarnationOf(options_),
                                       .address = "",
                                       .roles = options_.roles},
                              .job = options_.job,
                              .default_timeout = options_.default_timeout,
                              .clock = &threads_.clock(),
                              .executor = &threads_.executor(),
                              .control_executor = &threads_.control_executor(),
                              .pool = threads_.pool(),
                              .observers = options_.observers})),
      sender_(state_),
      control_(state_, &sender_),
      members_(
          {.state = state_,
           .store = options_.store,
           .transport = options_.transport.get(),
           .control = &control_,
           .liveness = options_.liveness,
           .world_size = options_.world_size,
           .start_timeout = options_.start_timeout,
           .on_peer_lost =
               [this](const WorkerInfo& worker, const absl::Status& status) {
                 NotifyServices(worker, status);
               },
           .on_fenced = [this] { options_.transport->SetServing(false); }}),
      outbound_(state_, &sender_, &members_),
      inbound_({.state = state_,
                .senders = &members_,
                .registry = options_.registry,
                .limits = options_.limits}) {
  for (const auto& service : options_.services) {
    services_.push_back(service.get());
  }
}

// Services may use clock and executor until they are destroyed.
AgentParts::~AgentParts() { options_.services.clear(); }

absl::Status AgentParts::StartServices() {
  for (Service* service : services_) {
    ++num_started_services_;
    RETURN_IF_ERROR(service->Start(*this));
    if (MessageInterceptor* interceptor = service->message_interceptor();
        interceptor != nullptr) {
      if (state_->interceptor() != nullptr) {
        return absl::InvalidArgumentError(
            "two services of one agent have a message interceptor");
      }
      state_->SetInterceptor(interceptor);
    }
  }
  return absl::OkStatus();
}

// 1. Services register their methods.
// 2. The transport serves; no peer has the address yet.
// 3. The worker joins the job, and with a world size waits for all others.
absl::Status AgentParts::Start() {
  RETURN_IF_ERROR(SettleRoles(*options_.transport, *state_));
  RETURN_IF_ERROR(members_.JoinGroup());
  RETURN_IF_ERROR(
      RegisterWorkerMethods(*options_.registry, members_, inbound_));
  RETURN_IF_ERROR(StartServices());
  ASSIGN_OR_RETURN(std::vector<TransportMethod> methods, inbound_.Methods());
  // A peer that has the address from elsewhere may call from here on; it is
  // rejected, since it cannot know this incarnation.
  ASSIGN_OR_RETURN(
      const std::string bound,
      options_.transport->Listen(options_.bind_address, std::move(methods)));
  ASSIGN_OR_RETURN(std::string address,
                   AdvertisedAddress(options_.advertise_address, bound));
  state_->SetAddress(std::move(address));
  state_->SetPhase(AgentState::Phase::kRunning);
  RETURN_IF_ERROR(members_.Join());
  options_.transport->SetRoles(info().roles);
  options_.transport->SetServing(true);
  // It may have been declared lost meanwhile.
  if (state_->fenced()) options_.transport->SetServing(false);
  return absl::OkStatus();
}

void AgentParts::NotifyServices(const WorkerInfo& worker,
                                const absl::Status& status) {
  inbound_.Forget(worker.incarnation);
  state_->Post(state_->executor(), [this, worker, status] {
    for (Service* service : services_) {
      async::LogExceptions("a service",
                           [&] { service->OnWorkerLost(worker, status); });
    }
  });
}

absl::StatusOr<const RegisteredFunction*> AgentParts::FindFunction(
    const MethodCall& call, std::string_view name, std::string_view signature) {
  return inbound_.FindFunction(call, name, signature);
}

async::Future<ErasedValue> AgentParts::Invoke(
    const RegisteredFunction& function, Decoder& arguments) {
  return inbound_.Invoke(function, arguments);
}

absl::StatusOr<WorkerInfo> AgentParts::FindWorker(const Destination& worker) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Peer> peer,
                   members_.FindPeer(worker, async::kNever));
  return peer->info();
}

absl::Status AgentParts::RegisterRawMethod(const MethodName& method,
                                           RawMethodHandler handler,
                                           MethodOptions options) {
  return inbound_.Register(method, std::move(handler), std::move(options));
}

async::Future<RawMessage> AgentParts::CallRawMethod(
    const Destination& to, const MethodName& method, RawMessage request,
    const MethodCallOptions& options) {
  return outbound_.CallMethod(to, method, std::move(request), options);
}

async::Future<void> AgentParts::Leave() {
  std::shared_ptr<GracefulLeave> leave;
  bool begin = false;
  {
    async::MutexLock lock(&mutex_);
    if (graceful_leave_ == nullptr) {
      if (shutdown_begun_ || !members_.joined()) {
        return async::MakeReadyFuture<void>(absl::FailedPreconditionError(
            shutdown_begun_ ? "the agent was shut down"
                            : "the worker has not joined its job"));
      }
      graceful_leave_ = std::make_shared<GracefulLeave>(GracefulLeave::Options{
          .state = state_,
          .member = &members_,
          .services = &services_,
          .static_group = options_.world_size.has_value(),
          .heartbeat_interval = options_.liveness.heartbeat_interval,
          .timeout = options_.shutdown_timeout});
      begin = true;
    }
    leave = graceful_leave_;
  }
  if (begin) {
    options_.transport->SetServing(false);
    leave->Begin();
  }
  // Each caller gets a future of its own, so that cancelling one leaves the
  // others alone.
  return leave->future().Then([](absl::Status status) { return status; });
}

bool AgentParts::shutdown_begun() const {
  async::MutexLock lock(&mutex_);
  return shutdown_begun_;
}

void AgentParts::AbandonLeave() {
  // Callbacks of the future may not shut this agent down.
  AgentState::InsideScope inside(state_.get());
  std::shared_ptr<GracefulLeave> leave;
  {
    async::MutexLock lock(&mutex_);
    leave = graceful_leave_;
  }
  if (leave != nullptr) leave->Abandon();
}

// 1. No call begins; the transport ends the calls in flight, in both
//    directions.
// 2. Posted work runs to its end: its calls are rejected, and services end its
//    waits.
// 3. Nothing that could use the services is left: they stop.
void AgentParts::Stop() {
  state_->SetPhase(AgentState::Phase::kStopping);
  members_.Stop();
  state_->call_gate().Close();
  options_.transport->Shutdown();
  outbound_.AbandonRetries();
  for (size_t i = num_started_services_; i > 0; --i) {
    services_[i - 1]->Interrupt();
  }
  threads_.Shutdown();
  state_->gate().Close();
  outbound_.AbandonRetries();
  for (size_t i = num_started_services_; i > 0; --i) services_[i - 1]->Stop();
  members_.Disconnect();
  state_->SetPhase(AgentState::Phase::kStopped);
}

absl::Status AgentParts::Shutdown(bool graceful) {
  if (AgentState::InsideScope::IsInside(state_.get())) {
    return absl::FailedPreconditionError(
        "an agent cannot be shut down within one of its calls");
  }
  const bool joined = members_.joined();
  absl::Status status;
  if (graceful && joined && !shutdown_begun()) status = Leave().Wait();
  {
    async::BlockingRegion region;
    async::MutexLock lock(&mutex_);
    if (std::exchange(shutdown_begun_, true)) {
      while (!shutdown_result_.has_value()) changed_.Wait(&mutex_);
      // A leave that was cut short failed, even if the shutdown succeeded.
      return status.ok() ? *shutdown_result_ : status;
    }
  }
  if (joined) options_.transport->SetServing(false);
  AbandonLeave();
  if (joined && (!graceful || !status.ok())) {
    // Stopped first, so that this worker does not process its own loss.
    members_.StopMembership();
    // Frees the name. The earlier error is the one to report.
    (void)members_.WithdrawAsLost();
  }
  Stop();
  async::MutexLock lock(&mutex_);
  shutdown_result_ = status;
  changed_.NotifyAll();
  return status;
}

}  // namespace hawser::rpc
