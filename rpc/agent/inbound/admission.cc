#include "rpc/agent/inbound/admission.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/identity.h"
#include "net/auth/role.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {
namespace {

// Escapes a name from a peer for a message.
std::string Quote(std::string_view text) {
  constexpr size_t kMaxShown = 160;
  return absl::StrCat("'",
                      absl::CHexEscape(absl::string_view(
                          text.data(), std::min(text.size(), kMaxShown))),
                      "'");
}

}  // namespace

absl::Status Admission::MaybeApplied(const InboundCall& call,
                                     absl::Status status) const {
  const WorkerInfo& self = state_->self();
  SetErrorDetail({.worker = self.name,
                  .incarnation = self.incarnation,
                  .maybe_applied = call.call_id != 0},
                 status);
  return status;
}

// While only this worker treats the sender as lost, the sender must neither
// restart nor conclude that one of the two was declared lost.
absl::Status Admission::SourceIsLost(const InboundCall& call) const {
  const std::string source = ToString(call.source);
  return MaybeApplied(
      call, senders_->HasDeparted(call.source.incarnation)
                ? absl::FailedPreconditionError(absl::StrCat(
                      source, " was declared lost and must restart"))
                : absl::UnavailableError(absl::StrCat(
                      ToString(state_->self()), " takes ", source,
                      " for lost, of which the others do not know yet")));
}

// Streams, references and message counts are kept by incarnation.
absl::StatusOr<std::shared_ptr<Peer>> Admission::SenderOf(
    const RequestHeader& header) {
  const WorkerInfo& self = state_->self();
  std::shared_ptr<Peer> sender =
      senders_->FindSender(header.source_incarnation);
  // This worker knows itself also before it has joined.
  const WorkerInfo* const known = header.source_incarnation == self.incarnation
                                      ? &self
                                  : sender != nullptr ? &sender->info()
                                                      : nullptr;
  if (known != nullptr && known->name != header.source) {
    return absl::UnauthenticatedError(
        absl::StrCat("the message says it is from ", Quote(header.source),
                     ", but its incarnation is that of ", ToString(*known)));
  }
  return sender;
}

absl::Status Admission::CheckSource(InboundCall& call, const Target& target,
                                    const std::shared_ptr<Peer>& sender) {
  if (sender == nullptr) {
    return senders_->IsLost(call.source) ? SourceIsLost(call)
                                         : absl::OkStatus();
  }
  if (target.for_left_workers && sender->left()) return absl::OkStatus();
  if (sender->lost() || senders_->IsLost(call.source)) {
    return SourceIsLost(call);
  }
  senders_->OnMessage(sender);
  call.counters = sender->counters();
  return absl::OkStatus();
}

absl::Status Admission::CheckDestination(const RequestHeader& header) const {
  const WorkerInfo& self = state_->self();
  if (header.job != state_->job()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a message for job ", Quote(header.job),
                     " reached a worker of job '", state_->job(), "'"));
  }
  if (header.destination != self.name ||
      header.destination_incarnation != self.incarnation) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a message for worker ", Quote(header.destination), " of incarnation ",
        ToString(header.destination_incarnation), " reached ", ToString(self)));
  }
  return absl::OkStatus();
}

absl::Status Admission::CheckThisWorker(const InboundCall& call,
                                        bool begins_work) const {
  // Read first, since being fenced is known only afterwards.
  const bool maybe_fenced = senders_->MaybeFenced();
  // A fenced worker has forgotten its senders, and so whether this is a copy.
  if (state_->fenced()) return MaybeApplied(call, state_->CheckRunning());
  RETURN_IF_ERROR(state_->CheckRunning());
  if (begins_work && state_->phase() == AgentState::Phase::kLeaving) {
    return absl::UnavailableError(
        absl::StrCat(ToString(state_->self()), " is leaving the job"));
  }
  if (maybe_fenced) {
    return absl::UnavailableError(absl::StrCat(
        ToString(state_->self()),
        " stalled for about as long as its lease and does not know yet "
        "whether it was declared lost"));
  }
  return absl::OkStatus();
}

absl::Status Admission::AdmitSender(InboundCall& call, const Target& target,
                                    const RequestHeader& header) {
  ASSIGN_OR_RETURN(std::optional<net::Identity> caller,
                   call.incoming().caller());
  if (caller.has_value()) {
    RETURN_IF_ERROR(
        net::CheckClaim(*caller, {.job = std::string(header.job),
                                  .worker = std::string(header.source)}));
  }
  if (absl::Status status = ValidateWorkerName(header.source); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the sender's name is not valid: ", status.message()));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Peer> sender, SenderOf(header));
  if (sender != nullptr) {
    call.source = sender->info();
    call.unconfirmed = false;
  } else {
    call.source = {.name = std::string(header.source),
                   .id = header.source_rank,
                   .incarnation = header.source_incarnation,
                   .address = ""};
    call.unconfirmed = header.source_rank.valid() &&
                       header.source_incarnation != state_->self().incarnation;
  }
  call.call_id = header.call_id;
  RETURN_IF_ERROR(CheckThisWorker(call, target.begins_work));
  RETURN_IF_ERROR(CheckSource(call, target, sender));
  if (caller.has_value()) {
    if (!call.source.roles.empty()) {
      RETURN_IF_ERROR(net::CheckClaimedRoles(call.source.name, caller->roles,
                                             call.source.roles));
    }
    call.source.roles = std::move(caller->roles);
  }
  return absl::OkStatus();
}

absl::Status Admission::Admit(InboundCall& call, const Target& target) {
  Payload request = call.incoming().TakeRequest();
  call.request_bytes = request.size();
  ASSIGN_OR_RETURN(call.message, IncomingMessage::Parse(std::move(request)));
  ASSIGN_OR_RETURN(RequestHeader header, call.message->ParseRequestHeader());
  RETURN_IF_ERROR(CheckDestination(header));
  RETURN_IF_ERROR(AdmitSender(call, target, header));
  if (target.quota != nullptr) {
    ASSIGN_OR_RETURN(call.reservation,
                     target.quota->Admit(call.source.name, call.request_bytes));
    if (call.counters != nullptr) {
      call.counters->AddServed(call.request_bytes);
    }
  }
  call.autograd = std::move(header.autograd);
  call.trace = std::move(header.trace);
  return absl::OkStatus();
}

absl::Status Admission::AdmitConfirmed(InboundCall& call,
                                       const Target& target) {
  ASSIGN_OR_RETURN(const RequestHeader header,
                   call.message->ParseRequestHeader());
  RETURN_IF_ERROR(AdmitSender(call, target, header));
  if (call.unconfirmed) {
    // It departed after it was confirmed.
    return absl::UnavailableError(absl::StrCat(
        ToString(call.source), " is no member of the job any more"));
  }
  if (target.quota != nullptr && call.counters != nullptr) {
    call.counters->AddServed(call.request_bytes);
  }
  return absl::OkStatus();
}

}  // namespace hawser::rpc
