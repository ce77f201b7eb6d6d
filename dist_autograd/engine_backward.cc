// Backward passes: their start on the root worker, and their messages.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "dist_autograd/engine.h"
#include "dist_autograd/service_methods.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/errors/status_details.h"
#include "rpc/errors/status_prefix.h"
#include "rpc/identity/timeout.h"
#include "rpc/identity/worker_run.h"
#include "rref/rref_service.h"
#include "rref/wire_ids.h"

namespace hawser::dist_autograd {
namespace {

// Upper bound on the time by which a worker times out before the worker that
// waits for it, so that its error, which names the missing gradients, arrives
// in time.
constexpr absl::Duration kMaxReportTime = absl::Milliseconds(500);
// A year. Larger values in messages are capped.
constexpr uint64_t kMaxTimeLeftUs = uint64_t{365} * 24 * 3600 * 1'000'000;
// Time left in a message that is sent at the deadline.
constexpr absl::Duration kMinTimeLeft = absl::Microseconds(1);

// Adds the worker's name to an error reported by `peer` if the error began
// there. So the error reads the same on every path that it takes.
absl::Status ReportedBy(const rpc::WorkerInfo& peer,
                        const absl::Status& error) {
  const std::optional<rpc::ErrorDetail> origin = rpc::GetErrorDetail(error);
  if (!origin.has_value() || origin->incarnation != peer.incarnation) {
    return error;
  }
  return rpc::WithPrefix(absl::StrCat("backward on worker '", peer.name, "'"),
                         error);
}

// Sets `self` as the origin of an error without one.
absl::Status WithOrigin(const absl::Status& error,
                        const rpc::WorkerInfo& self) {
  return rpc::WithErrorDetail(error, self, /*maybe_applied=*/false);
}

// Sends the messages of one pass through the agent, until its deadline.
class HostTransport final : public BackwardPassTransport {
 public:
  HostTransport(std::shared_ptr<rpc::HostHandle> host,
                DistAutogradOptions options, std::vector<rpc::WorkerInfo> peers,
                async::MonotonicTime deadline)
      : host_(std::move(host)), options_(options), deadline_(deadline) {
    for (rpc::WorkerInfo& peer : peers) {
      const rpc::WorkerRun run = RunOf(peer);
      peers_.emplace(run, std::move(peer));
    }
  }

  async::Future<void> SendGradients(const rpc::WorkerRun& to,
                                    v1::GradientRequest request,
                                    std::vector<Tensor> tensors) override {
    const rpc::HostHandle::Use host = host_->Acquire();
    auto peer = peers_.find(to);
    if (!host || peer == peers_.end()) {
      return async::MakeReadyFuture<void>(absl::CancelledError(
          "the worker was shut down during a backward pass"));
    }
    rpc::MethodCallOptions options;
    options.timeout = rpc::kNoTimeout;
    if (deadline_ != async::kNever) {
      const absl::Duration left = std::max(
          kMinTimeLeft, async::TimeBetween(host->clock().Now(), deadline_));
      options.timeout = left;
      request.set_time_left_us(
          static_cast<uint64_t>(absl::ToInt64Microseconds(left)));
    }
    options.attempt_timeout = options_.gradient_attempt_timeout;
    options.inherit_deadline = false;
    return host
        ->CallMethod(peer->second, kGradientMethod, request, std::move(tensors),
                     options)
        .Then([worker = peer->second](
                  absl::StatusOr<rpc::Message<v1::GradientReply>> reply) {
          return ReportedBy(worker, reply.status());
        });
  }

  void SendAbort(const rpc::WorkerRun& to, const v1::BackwardPassId& pass,
                 const absl::Status& error) override {
    const rpc::HostHandle::Use host = host_->Acquire();
    auto peer = peers_.find(to);
    if (!host || peer == peers_.end()) return;
    v1::AbortPassRequest request;
    *request.mutable_pass() = pass;
    *request.mutable_error() =
        rpc::ToStatusDetails(WithOrigin(error, host->info()));
    rpc::MethodCallOptions options;
    options.attempt_timeout = options_.control_attempt_timeout;
    options.inherit_deadline = false;
    (void)host->CallMethod(peer->second, kAbortPassMethod, request, {},
                           options);
  }

 private:
  const std::shared_ptr<rpc::HostHandle> host_;
  const DistAutogradOptions options_;
  const async::MonotonicTime deadline_;
  absl::flat_hash_map<rpc::WorkerRun, rpc::WorkerInfo> peers_;
};

absl::Status CheckRoots(const std::vector<Tensor>& roots) {
  if (roots.empty()) {
    return absl::InvalidArgumentError(
        "a backward pass needs at least one root");
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    const std::string name = absl::StrCat("root ", i, " of the backward pass ");
    if (!roots[i].defined() || !autograd::RequiresGrad(roots[i])) {
      return absl::InvalidArgumentError(name + "does not require a gradient");
    }
    if (roots[i].num_elements() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "has ", roots[i].num_elements(),
                       " elements; it must have one"));
    }
    if (autograd::IsLeaf(roots[i])) {
      return absl::InvalidArgumentError(
          name +
          "is a leaf: it was not computed from tensors that require gradients");
    }
  }
  return absl::OkStatus();
}

BackwardPassOptions FromProto(const v1::BackwardPassId& proto) {
  BackwardPassOptions options;
  options.id = {ContextId{proto.context()}, rref::FromProto(proto.root()),
                proto.number()};
  options.retain_graph = proto.retain_graph();
  options.smart = proto.smart();
  return options;
}

}  // namespace

std::shared_ptr<BackwardPassTransport> Engine::MakeTransport(
    const Context& context, async::MonotonicTime deadline) {
  return std::make_shared<HostTransport>(host_, options_, context.peers(),
                                         deadline);
}

size_t Engine::num_passes() const {
  const std::vector<std::shared_ptr<Context>> contexts = contexts_.All();
  return static_cast<size_t>(std::count_if(
      contexts.begin(), contexts.end(),
      [](const auto& context) { return context->pass() != nullptr; }));
}

void Engine::FailAt(async::MonotonicTime deadline,
                    const std::shared_ptr<BackwardPass>& pass) {
  const rpc::HostHandle::Use host = host_->Acquire();
  if (!host || deadline == async::kNever) return;
  async::TaskContext::Scope detached((async::TaskContext()));
  const async::TimerId timer = host->clock().CallAt(
      deadline, [weak = std::weak_ptr<BackwardPass>(pass), name = self_.name] {
        const std::shared_ptr<BackwardPass> late = weak.lock();
        if (late == nullptr) return;
        const std::string missing = late->DescribeMissing();
        late->Fail(absl::DeadlineExceededError(absl::StrCat(
            "the backward pass did not end before its timeout; worker '", name,
            missing.empty() ? "' waited for other workers"
                            : "' waited for the gradients of forward messages ",
            missing)));
      });
  pass->done().OnReady([handle = host_, timer](const absl::Status&) {
    if (const rpc::HostHandle::Use use = handle->Acquire()) {
      use->clock().Cancel(timer);
    }
  });
}

async::Future<void> Engine::Backward(ContextId context_id,
                                     const std::vector<Tensor>& roots,
                                     const BackwardOptions& options) {
  auto fail = [this](const absl::Status& status) {
    return async::MakeReadyFuture<void>(WithOrigin(status, self_));
  };
  if (options.timeout.has_value()) {
    if (absl::Status status = rpc::CheckTimeout(*options.timeout);
        !status.ok()) {
      return fail(status);
    }
  }
  async::MonotonicTime deadline;
  {
    const rpc::HostHandle::Use host = host_->Acquire();
    if (!host) {
      return fail(absl::FailedPreconditionError("the worker was shut down"));
    }
    deadline = async::AddDelay(
        host->clock().Now(), options.timeout.value_or(host->default_timeout()));
  }
  if (const rpc::CurrentCall* call = rpc::CurrentCall::Get()) {
    deadline = std::min(deadline, call->deadline());
  }
  absl::StatusOr<std::shared_ptr<Context>> context = contexts_.Find(context_id);
  if (!context.ok()) return fail(context.status());
  if (absl::Status status = CheckRoots(roots); !status.ok()) {
    return fail(std::move(status));
  }
  BackwardPassOptions pass_options;
  pass_options.id = {context_id, RunOf(self_), next_pass_.fetch_add(1)};
  pass_options.retain_graph = options.retain_graph;
  pass_options.smart = options.mode == BackwardMode::kSmart;
  absl::StatusOr<std::shared_ptr<BackwardPass>> pass = BackwardPass::Create(
      *context, pass_options, roots, MakeTransport(**context, deadline));
  if (!pass.ok()) return fail(pass.status());
  if (absl::Status status = (*context)->BeginPass(*pass); !status.ok()) {
    return fail(std::move(status));
  }
  FailAt(deadline, *pass);
  std::vector<Tensor> seeds;
  for (const Tensor& root : roots) {
    seeds.push_back(Tensor::Ones(root.shape(), {.dtype = root.dtype()}));
  }
  async::Future<void> done =
      (*pass)->done().Then([self = self_](const absl::Status& status) {
        return WithOrigin(status, self);
      });
  (*pass)->Start(std::move(seeds));
  done.SetWaitPoller((*pass)->poller());
  return done;
}

async::Future<rpc::Message<v1::GradientReply>> Engine::HandleGradient(
    const rpc::MethodCall& call, rpc::Message<v1::GradientRequest> request) {
  using Reply = rpc::Message<v1::GradientReply>;
  const BackwardPassOptions options = FromProto(request.body.pass());
  // The forward message that brings the context may not have arrived yet.
  absl::StatusOr<std::shared_ptr<Context>> context = contexts_.FindOrCreate(
      options.id.context,
      rpc::Incarnation{request.body.pass().context_incarnation()}, call.peer);
  if (context.ok() && *context == nullptr) {
    context = contexts_.Find(options.id.context);
  }
  if (!context.ok()) return async::MakeReadyFuture<Reply>(context.status());
  async::MonotonicTime deadline = async::kNever;
  if (const rpc::HostHandle::Use host = host_->Acquire();
      host && request.body.time_left_us() != 0) {
    const absl::Duration left = absl::Microseconds(
        std::min(request.body.time_left_us(), kMaxTimeLeftUs));
    deadline = async::AddDelay(host->clock().Now(),
                               left - std::min(left / 10, kMaxReportTime));
  }
  absl::StatusOr<Context::Participation> joined = (*context)->JoinPass(
      options, [&] { return MakeTransport(**context, deadline); });
  if (!joined.ok()) {
    return async::MakeReadyFuture<Reply>(WithOrigin(joined.status(), self_));
  }
  if (joined->is_new) {
    FailAt(deadline, joined->pass);
    joined->pass->Start({});
  }
  return joined->pass
      ->Receive(RunOf(call.peer), request.body, std::move(request.tensors),
                joined->is_new)
      .Then(
          [self = self_](const absl::Status& status) -> absl::StatusOr<Reply> {
            RETURN_IF_ERROR(WithOrigin(status, self));
            return Reply();
          });
}

async::Future<rpc::Message<v1::AbortPassReply>> Engine::HandleAbortPass(
    const rpc::MethodCall& call, rpc::Message<v1::AbortPassRequest> request) {
  using Reply = rpc::Message<v1::AbortPassReply>;
  const BackwardPassOptions options = FromProto(request.body.pass());
  absl::Status error = ReportedBy(
      call.peer,
      WithOrigin(rpc::FromStatusDetails(request.body.error()), call.peer));
  if (error.ok()) {
    return async::MakeReadyFuture<Reply>(
        absl::InvalidArgumentError("a pass was aborted without an error"));
  }
  if (absl::StatusOr<std::shared_ptr<Context>> context =
          contexts_.Find(options.id.context);
      context.ok()) {
    if (!(*context)->HasPeer(RunOf(call.peer))) {
      return async::MakeReadyFuture<Reply>(absl::PermissionDeniedError(
          absl::StrCat("worker '", call.peer.name,
                       "' takes no part in distributed autograd context ",
                       ToString(options.id.context))));
    }
    if (const std::shared_ptr<BackwardPass> pass =
            (*context)->RefusePass(options.id, error)) {
      pass->Fail(error);
    }
  }
  return async::MakeReadyFuture<Reply>(Reply());
}

async::Future<rpc::Message<v1::BackwardReferenceReply>>
Engine::HandleBackwardReference(
    const rpc::MethodCall& call,
    rpc::Message<v1::BackwardReferenceRequest> request) {
  using Reply = rpc::Message<v1::BackwardReferenceReply>;
  auto find = [&]() -> absl::StatusOr<std::shared_ptr<rref::OwnerValue>> {
    const rpc::HostHandle::Use host = host_->Acquire();
    if (!host) return absl::UnavailableError("the worker is shutting down");
    ASSIGN_OR_RETURN(const std::shared_ptr<rref::Protocol> protocol,
                     rref::ProtocolOf(*host));
    return protocol->FindValue(request.body.rref(), call.peer);
  };
  absl::StatusOr<std::shared_ptr<rref::OwnerValue>> value = find();
  if (!value.ok()) return async::MakeReadyFuture<Reply>(value.status());
  BackwardOptions options;
  options.retain_graph = request.body.retain_graph();
  options.mode =
      request.body.smart() ? BackwardMode::kSmart : BackwardMode::kFast;
  return (*value)
      ->future()
      .Then([self = shared_from_this(), options,
             context = ContextId{request.body.context()}](
                absl::StatusOr<rpc::ErasedValue> root) {
        if (!root.ok()) return async::MakeReadyFuture<void>(root.status());
        if (root->type->name != rpc::TypeName<Tensor>()) {
          return async::MakeReadyFuture<void>(absl::InvalidArgumentError(
              "the root of a backward pass is not a tensor"));
        }
        return self->Backward(
            context, {*std::static_pointer_cast<Tensor>(root->value)}, options);
      })
      .Then([](const absl::Status& status) -> absl::StatusOr<Reply> {
        RETURN_IF_ERROR(status);
        return Reply();
      });
}

}  // namespace hawser::dist_autograd
