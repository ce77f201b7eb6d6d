#include "rref/protocol.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rref/service_methods.h"
#include "rref/wire_ids.h"

namespace hawser::rref {
namespace {

absl::Status ShutDownError() {
  return absl::FailedPreconditionError(
      "the worker was shut down: its references cannot be used any more");
}

}  // namespace

Protocol::Protocol(rpc::ServiceHost& host, RRefOptions options)
    : self_(host.info()),
      self_run_(RunOf(self_)),
      options_(options),
      ids_(self_run_),
      owners_(self_run_, options.tombstones, options.limits),
      users_(self_run_, options.tombstones),
      host_(host) {}

absl::Status Protocol::Start() {
  RETURN_IF_ERROR(Validate(options_.limits));
  const rpc::HostHandle::Use host = host_.Acquire();
  RETURN_IF_ERROR(
      (host->RegisterMethod(kCreateMethod,
                            [this](const rpc::MethodCall& call, auto request) {
                              return HandleCreate(call, std::move(request));
                            },
                            {.run_on = rpc::RunOn::Inline()})));
  RETURN_IF_ERROR(
      (host->RegisterMethod(kFetchMethod,
                            [this](const rpc::MethodCall& call, auto request) {
                              return HandleFetch(call, std::move(request));
                            },
                            {.run_on = rpc::RunOn::Inline()})));
  RETURN_IF_ERROR((host->RegisterMethod(
      kControlMethod, [this](const rpc::MethodCall& call, auto request) {
        return HandleControl(call, std::move(request));
      })));
  ScheduleAudit();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Reference>> Protocol::MakeLocal(
    rpc::ErasedValue object) {
  if (!host_.Acquire()) return ShutDownError();
  return std::make_shared<Reference>(
      shared_from_this(), ids_.NextRRefId(), self_,
      std::make_shared<OwnerValue>(std::move(object)));
}

absl::StatusOr<v1::RRefReference> Protocol::Share(const Reference& reference,
                                                  const rpc::WorkerInfo& to) {
  if (!host_.Acquire()) return ShutDownError();
  const ForkId fork = ids_.NextForkId();
  if (reference.is_owner()) {
    RETURN_IF_ERROR(owners_.Share(reference.id(), fork, to, reference.value()));
  } else {
    RETURN_IF_ERROR(users_.AddChild(reference.fork(), fork, RunOf(to)));
  }
  v1::RRefReference proto;
  *proto.mutable_rref() = ToProto(reference.id());
  *proto.mutable_fork() = ToProto(fork);
  *proto.mutable_owner() = ToProto(RunOf(reference.owner()));
  proto.set_owner_name(reference.owner().name);
  return proto;
}

absl::StatusOr<Protocol::ReceivedReference> Protocol::Receive(
    const v1::RRefReference& reference, const rpc::WorkerInfo& from) {
  if (!host_.Acquire()) return ShutDownError();
  const RRefId rref{FromProto(reference.rref())};
  const ForkId fork{FromProto(reference.fork())};
  const rpc::WorkerRun owner = FromProto(reference.owner());
  const rpc::WorkerRun parent = RunOf(from);
  if (fork.creator != parent) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker '", from.name, "' shared a reference as fork ",
                     fork.ToString(), ", an id of another worker"));
  }
  if (owner == self_run_) return ReceiveAsOwner(rref, fork, from);

  rpc::WorkerInfo owner_info{reference.owner_name(), owner.id,
                             owner.incarnation, ""};
  if (!owner_info.id.valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker '", from.name,
                     "' shared a reference whose owner has an invalid rank"));
  }
  ASSIGN_OR_RETURN(UserTable::ReceivedFork received,
                   users_.Receive(rref, fork, owner, parent));
  ReceivedReference result;
  result.reference =
      std::make_shared<Reference>(shared_from_this(), rref, fork,
                                  std::move(owner_info), received.confirmed);
  if (!received.confirmed.ready()) {
    result.prerequisite = std::move(received.confirmed);
  }
  if (received.request_owner) {
    v1::RRefControlOperation operation;
    *operation.mutable_request_fork()->mutable_rref() = reference.rref();
    *operation.mutable_request_fork()->mutable_fork() = reference.fork();
    Send(owner, std::move(operation));
  }
  return result;
}

absl::StatusOr<Protocol::ReceivedReference> Protocol::ReceiveAsOwner(
    RRefId rref, ForkId fork, const rpc::WorkerInfo& from) {
  const rpc::WorkerRun parent = RunOf(from);
  // By this id the owner keeps a value that it created for itself.
  if (fork == ForkId{rref}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker '", from.name, "' shared reference ", rref.ToString(),
        " as a fork with the id of the reference"));
  }
  if (users_.IsWithdrawn(fork)) {
    return absl::AbortedError(absl::StrCat(
        "reference ", rref.ToString(), " arrived after its sender, worker '",
        from.name, "', had withdrawn it: send it again"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<OwnerValue> value, owners_.Find(rref, from));
  ReceivedReference result;
  result.reference = std::make_shared<Reference>(shared_from_this(), rref,
                                                 self_, std::move(value));
  if (parent == self_run_) {
    // The fork was recorded at encoding.
    Run(owners_.RemoveFork(rref, fork, self_run_));
    return result;
  }
  v1::RRefControlOperation operation;
  *operation.mutable_child_accept()->mutable_fork() = ToProto(fork);
  Send(parent, std::move(operation));
  return result;
}

void Protocol::Release(ForkId fork) { Run(users_.Release(fork)); }

void Protocol::ReleaseEntry(RRefId rref) {
  Run(owners_.RemoveFork(rref, ForkId{rref}, self_run_));
}

absl::Status Protocol::Check(ForkId fork) const { return users_.Check(fork); }

absl::StatusOr<std::shared_ptr<OwnerValue>> Protocol::FindValue(
    const v1::GlobalId& rref, const rpc::WorkerInfo& from) {
  return owners_.Find(RRefId{FromProto(rref)}, from);
}

void Protocol::Run(OwnerTable::Actions actions) {
  for (const auto& [value, error] : actions.failed) value->Set(error);
  actions.dropped.clear();
  AdvanceDrain();
}

Protocol::Counts Protocol::counts() const {
  return {.owner = owners_.counts(),
          .user = users_.counts(),
          .control_operations = sender_.pending(),
          .control_senders = receiver_.num_peers(),
          .control_receivers = sender_.num_peers()};
}

}  // namespace hawser::rref
