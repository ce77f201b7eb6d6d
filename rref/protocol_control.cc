// Control operations and lost workers, by which the tables of different workers
// stay consistent.

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "net/wire_text.h"
#include "rpc/errors/error_detail.h"
#include "rref/protocol.h"
#include "rref/service_methods.h"
#include "rref/wire_ids.h"

namespace hawser::rref {
namespace {

absl::Status ToStatus(const v1::RRefControlResult& result) {
  return absl::Status(static_cast<absl::StatusCode>(result.code()),
                      result.message());
}

// Returns `worker` as a member of the job, or an error. Ids and incarnations
// come from messages, so state that outlives a message is kept only for
// members. May query the store.
absl::StatusOr<rpc::WorkerInfo> FindMember(rpc::ServiceHost& host,
                                           const rpc::WorkerInfo& worker) {
  ASSIGN_OR_RETURN(rpc::WorkerInfo member, host.FindWorker(worker));
  if (RunOf(member) != RunOf(worker)) {
    return rpc::WithErrorDetail(
        absl::NotFoundError(absl::StrCat(rpc::ToString(worker),
                                         " is not in the job; the job has ",
                                         rpc::ToString(member), " instead")),
        worker, /*maybe_applied=*/false);
  }
  return member;
}

}  // namespace

void Protocol::Send(rpc::WorkerRun to, v1::RRefControlOperation operation) {
  sender_.Add(to, std::move(operation));
  Flush(to);
}

void Protocol::Flush(rpc::WorkerRun to) {
  const rpc::HostHandle::Use host = host_.Acquire();
  if (!host) return;
  std::optional<v1::RRefControlRequest> batch = sender_.NextBatch(to);
  if (!batch.has_value()) return;
  absl::StatusOr<rpc::WorkerInfo> member =
      FindMember(*host, {"", to.id, to.incarnation, ""});
  if (!member.ok()) {
    ForgetWorker(to, member.status());
    return;
  }
  // The batch must not inherit the context of the task that caused it.
  async::TaskContext::Scope detached((async::TaskContext()));
  rpc::MethodCallOptions options;
  options.timeout = rpc::kNoTimeout;
  options.attempt_timeout = options_.control_attempt_timeout;
  options.inherit_deadline = false;
  host->CallMethod(*std::move(member), kControlMethod, *batch, {}, options)
      .OnReady(
          [self = shared_from_this(), to, request = *std::move(batch)](
              const absl::StatusOr<rpc::Message<v1::RRefControlReply>>& reply) {
            if (!reply.ok()) {
              // The call is retried as long as the peer lives, so this
              // incarnation is lost.
              self->LoseWorker(to, reply.status());
              return;
            }
            self->sender_.Finish(to);
            self->OnAnswer(to, request, reply->body);
            self->Flush(to);
            self->AdvanceDrain();
          });
}

void Protocol::OnAnswer(rpc::WorkerRun from,
                        const v1::RRefControlRequest& request,
                        const v1::RRefControlReply& reply) {
  for (int i = 0; i < request.operations_size(); ++i) {
    const v1::RRefControlOperation& operation = request.operations(i);
    const v1::RRefControlResult& result =
        i < reply.results_size() ? reply.results(i)
                                 : v1::RRefControlResult::default_instance();
    if (operation.has_request_fork()) {
      Run(users_.FinishRequest(
          ForkId{FromProto(operation.request_fork().fork())},
          ToStatus(result)));
    } else if (operation.has_withdraw_fork()) {
      const RRefId rref{FromProto(operation.withdraw_fork().rref())};
      const ForkId fork{FromProto(operation.withdraw_fork().fork())};
      if (result.known()) {
        owners_.AcknowledgeShare(rref, fork, from);
      } else {
        Run(owners_.RemoveFork(rref, fork, from));
        Run(users_.AcceptChild(fork, from));
      }
    }
  }
}

async::Future<rpc::Message<v1::RRefControlReply>> Protocol::HandleControl(
    const rpc::MethodCall& call, rpc::Message<v1::RRefControlRequest> request) {
  using Reply = rpc::Message<v1::RRefControlReply>;
  const rpc::WorkerRun from = RunOf(call.peer);
  {
    const rpc::HostHandle::Use host = host_.Acquire();
    const absl::Status known =
        host ? FindMember(*host, call.peer).status()
             : absl::UnavailableError("the worker is shutting down");
    if (!known.ok()) return async::MakeReadyFuture<Reply>(known);
  }
  UserTable::Actions users;
  OwnerTable::Actions owners;
  absl::StatusOr<v1::RRefControlReply> reply = receiver_.Receive(
      from, request.body, [&](const v1::RRefControlOperation& operation) {
        return Apply(call.peer, operation, users, owners);
      });
  Run(std::move(users));
  Run(std::move(owners));
  if (!reply.ok()) return async::MakeReadyFuture<Reply>(reply.status());
  return async::MakeReadyFuture<Reply>(Reply{*std::move(reply), {}});
}

// Each operation concerns what its sender made, got or holds: it changes
// nothing of other workers.
v1::RRefControlResult Protocol::Apply(const rpc::WorkerInfo& from,
                                      const v1::RRefControlOperation& operation,
                                      UserTable::Actions& users,
                                      OwnerTable::Actions& owners) {
  v1::RRefControlResult result;
  switch (operation.operation_case()) {
    case v1::RRefControlOperation::kRequestFork: {
      const v1::RequestFork& request = operation.request_fork();
      const absl::Status status =
          owners_.RequestFork(RRefId{FromProto(request.rref())},
                              ForkId{FromProto(request.fork())}, from);
      result.set_code(static_cast<int32_t>(status.code()));
      result.set_message(net::ToErrorText(status));
      break;
    }
    case v1::RRefControlOperation::kChildAccept:
      users.Append(users_.AcceptChild(
          ForkId{FromProto(operation.child_accept().fork())}, RunOf(from)));
      break;
    case v1::RRefControlOperation::kUserDelete: {
      const v1::UserDelete& end = operation.user_delete();
      const RRefId rref{FromProto(end.rref())};
      const ForkId fork{FromProto(end.fork())};
      owners.Append(end.creation_unacknowledged() && rref.creator == RunOf(from)
                        ? owners_.WithdrawCreation(rref, fork)
                        : owners_.RemoveFork(rref, fork, RunOf(from)));
      break;
    }
    case v1::RRefControlOperation::kWithdrawFork: {
      const ForkId fork{FromProto(operation.withdraw_fork().fork())};
      if (fork.creator != RunOf(from)) {
        result.set_code(
            static_cast<int32_t>(absl::StatusCode::kInvalidArgument));
        result.set_message(
            absl::StrCat("fork ", fork.ToString(), " is of another worker"));
        break;
      }
      result.set_known(users_.Withdraw(fork));
      break;
    }
    case v1::RRefControlOperation::OPERATION_NOT_SET:
      result.set_code(static_cast<int32_t>(absl::StatusCode::kUnimplemented));
      result.set_message("unknown control operation");
      break;
  }
  return result;
}

void Protocol::Run(UserTable::Actions actions) {
  for (auto& [promise, status] : actions.completions) {
    promise.Set(std::move(status));
  }
  for (const UserTable::Message& message : actions.messages) {
    v1::RRefControlOperation operation;
    if (message.kind == UserTable::Message::Kind::kChildAccept) {
      *operation.mutable_child_accept()->mutable_fork() = ToProto(message.fork);
    } else {
      v1::UserDelete& end = *operation.mutable_user_delete();
      *end.mutable_rref() = ToProto(message.rref);
      *end.mutable_fork() = ToProto(message.fork);
      end.set_creation_unacknowledged(
          message.kind == UserTable::Message::Kind::kWithdrawCreation);
    }
    Send(message.to, std::move(operation));
  }
  AdvanceDrain();
}

void Protocol::OnWorkerLost(const rpc::WorkerInfo& worker,
                            const absl::Status& status) {
  LoseWorker(RunOf(worker), status);
}

void Protocol::LoseWorker(rpc::WorkerRun run, const absl::Status& status) {
  receiver_.Close(run);
  sender_.Close(run);
  Run(owners_.OnWorkerLost(run, status));
  Run(users_.OnWorkerLost(run, status));
}

void Protocol::ForgetWorker(rpc::WorkerRun run, const absl::Status& status) {
  sender_.Forget(run);
  Run(users_.OnWorkerUnknown(run, status));
}

void Protocol::Audit() {
  auto ask = [this](rpc::WorkerRun to, RRefId rref, ForkId fork) {
    v1::RRefControlOperation operation;
    *operation.mutable_withdraw_fork()->mutable_rref() = ToProto(rref);
    *operation.mutable_withdraw_fork()->mutable_fork() = ToProto(fork);
    Send(to, std::move(operation));
  };
  for (const OwnerTable::Fork& share : owners_.TakeStaleShares()) {
    ask(share.holder, share.rref, share.fork);
  }
  for (const UserTable::PendingChild& child : users_.TakeStaleChildren()) {
    ask(child.to, child.rref, child.fork);
  }
}

void Protocol::ScheduleAudit() {
  const rpc::HostHandle::Use host = host_.Acquire();
  if (!host) return;
  async::TaskContext::Scope detached((async::TaskContext()));
  const async::TimerId timer = host->clock().CallAfter(
      options_.audit_interval, [weak = weak_from_this()] {
        const std::shared_ptr<Protocol> self = weak.lock();
        if (self == nullptr) return;
        const rpc::HostHandle::Use use = self->host_.Acquire();
        if (!use) return;
        use->executor().Post([self] {
          self->Audit();
          self->ScheduleAudit();
        });
      });
  async::MutexLock lock(&mutex_);
  audit_timer_ = timer;
}

}  // namespace hawser::rref
