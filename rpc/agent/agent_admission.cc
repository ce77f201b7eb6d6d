#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/identity.h"
#include "net/auth/role.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/inbound_call.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {
namespace {

// Lookups of unknown senders at once: each may hold a thread while the store
// is slow. Members are known from their events soon in any case.
constexpr int kMaxLookups = 4;
// Senders of which it is remembered, for so long, that the store has them not.
constexpr size_t kMaxNonMembers = 1024;
constexpr absl::Duration kNonMemberMemory = absl::Seconds(5);

// What a peer sent as a name, fit for a message.
std::string Quote(std::string_view text) {
  constexpr size_t kMaxShown = 160;
  return absl::StrCat("'",
                      absl::CHexEscape(absl::string_view(
                          text.data(), std::min(text.size(), kMaxShown))),
                      "'");
}

}  // namespace

absl::Status Agent::Impl::MaybeApplied(const InboundCall& call,
                                       absl::Status status) const {
  SetErrorDetail({.worker = self_.name,
                  .incarnation = self_.incarnation,
                  .maybe_applied = call.call_id != 0},
                 status);
  return status;
}

// As long as only this worker takes it for lost, it is not to restart, nor
// to conclude that one of the two is.
absl::Status Agent::Impl::SourceIsLost(const InboundCall& call) const {
  bool told = false;
  {
    async::MutexLock lock(&mutex_);
    told = ended_.contains(call.source.incarnation);
  }
  const std::string source = ToString(call.source);
  return MaybeApplied(
      call, told ? absl::FailedPreconditionError(absl::StrCat(
                       source, " was declared lost and must restart"))
                 : absl::UnavailableError(absl::StrCat(
                       ToString(self_), " takes ", source,
                       " for lost, of which the others do not know yet")));
}

// Streams, references and counts of messages are kept by incarnation.
absl::StatusOr<std::shared_ptr<Peer>> Agent::Impl::SenderOf(
    const RequestHeader& header) {
  std::shared_ptr<Peer> sender =
      peers_.FindByIncarnation(header.source_incarnation);
  // This worker's own is its own also before it has joined.
  const WorkerInfo* const known = header.source_incarnation == self_.incarnation
                                      ? &self_
                                  : sender != nullptr ? &sender->info()
                                                      : nullptr;
  if (known != nullptr && known->name != header.source) {
    return absl::UnauthenticatedError(
        absl::StrCat("the message says it is from ", Quote(header.source),
                     ", but its incarnation is that of ", ToString(*known)));
  }
  return sender;
}

absl::Status Agent::Impl::CheckSource(InboundCall& call,
                                      const RequestHeader& header,
                                      const std::shared_ptr<Peer>& sender) {
  if (absl::Status status = ValidateWorkerName(header.source); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the sender's name is not valid: ", status.message()));
  }
  call.source = {.name = std::string(header.source),
                 .id = header.source_rank,
                 .incarnation = header.source_incarnation,
                 .address = ""};
  if (IsLost(call.source)) return SourceIsLost(call);
  if (sender != nullptr) {
    call.source = sender->info();
    if (sender->lost()) return SourceIsLost(call);
    sender->SetHeard(clock_->Now());
    Watch(sender);
    call.counters = sender->counters();
    return absl::OkStatus();
  }
  LearnAbout(call.source);
  return absl::OkStatus();
}

bool Agent::Impl::BeginLookup(const WorkerInfo& worker) {
  const async::MonotonicTime now = clock_->Now();
  async::MutexLock lock(&mutex_);
  if (num_lookups_ == kMaxLookups) return false;
  const auto forgotten = [now](const auto& non_member) {
    return async::TimeBetween(non_member.second, now) >= kNonMemberMemory;
  };
  const auto known = non_members_.find(worker.incarnation);
  if (known != non_members_.end()) {
    if (!forgotten(*known)) return false;
  } else if (non_members_.size() >= kMaxNonMembers) {
    absl::erase_if(non_members_, forgotten);
    if (non_members_.size() >= kMaxNonMembers) return false;
  }
  non_members_[worker.incarnation] = now;
  ++num_lookups_;
  return true;
}

void Agent::Impl::LearnAbout(const WorkerInfo& worker) {
  // Clients that are no members say so.
  if (!worker.id.valid() || !BeginLookup(worker)) return;
  Post(*control_executor_, [this, worker] {
    absl::StatusOr<std::optional<WorkerInfo>> found =
        worker_directory_.FindByName(worker.name);
    if (found.ok() && found->has_value() &&
        (*found)->incarnation == worker.incarnation && !IsLost(**found)) {
      Watch(AddPeer(**found));
    }
    async::MutexLock lock(&mutex_);
    --num_lookups_;
  });
}

// A copy of a message that ran must not be answered as if nothing had run.
void Agent::Impl::Refuse(InboundCall& call, absl::Status status,
                         bool at_most_once) {
  if (at_most_once && call.call_id != 0 &&
      !GetErrorDetail(status).has_value() &&
      !duplicates_.FirstSeen(call.source.incarnation, call.call_id)) {
    call.incoming().Discard();
    return;
  }
  Fail(call, std::move(status));
}

// Refuses what is not meant for this worker, before anything of it is used.
absl::Status Agent::Impl::Admit(InboundCall& call, bool begins_work,
                                CallQuota* quota) {
  Payload request = call.incoming().TakeRequest();
  call.request_bytes = request.size();
  ASSIGN_OR_RETURN(call.message, IncomingMessage::Parse(std::move(request)));
  ASSIGN_OR_RETURN(RequestHeader header, call.message->ParseRequestHeader());
  if (header.job != options_.job) {
    return absl::FailedPreconditionError(
        absl::StrCat("a message for job ", Quote(header.job),
                     " reached a worker of job '", options_.job, "'"));
  }
  if (header.destination != self_.name ||
      header.destination_incarnation != self_.incarnation) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a message for worker ", Quote(header.destination), " of incarnation ",
        ToString(header.destination_incarnation), " reached ",
        ToString(self_)));
  }
  ASSIGN_OR_RETURN(std::optional<net::Identity> caller,
                   call.incoming().caller());
  if (caller.has_value()) {
    RETURN_IF_ERROR(
        net::CheckClaim(*caller, {.job = std::string(header.job),
                                  .worker = std::string(header.source)}));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Peer> sender, SenderOf(header));
  call.source.incarnation = header.source_incarnation;
  call.call_id = header.call_id;
  // Before what is looked at next: whether it is fenced is known after that.
  const bool maybe_fenced = membership_->MaybeFenced(clock_->Now());
  // What the sender did before is forgotten then, also whether this is a copy.
  if (fenced_.load(std::memory_order_acquire)) {
    return MaybeApplied(call, CheckRunning());
  }
  RETURN_IF_ERROR(CheckRunning());
  if (begins_work &&
      phase_.load(std::memory_order_acquire) == Phase::kLeaving) {
    return absl::UnavailableError(
        absl::StrCat(ToString(self_), " is leaving the job"));
  }
  if (maybe_fenced) {
    return absl::UnavailableError(absl::StrCat(
        ToString(self_),
        " stalled for about as long as its lease and does not know yet "
        "whether it was declared lost"));
  }
  RETURN_IF_ERROR(CheckSource(call, header, sender));
  if (caller.has_value()) {
    if (!call.source.roles.empty()) {
      RETURN_IF_ERROR(net::CheckClaimedRoles(call.source.name, caller->roles,
                                             call.source.roles));
    }
    call.source.roles = std::move(caller->roles);
  }
  if (quota != nullptr) {
    ASSIGN_OR_RETURN(call.reservation,
                     quota->Admit(call.source.name, call.request_bytes));
    if (call.counters != nullptr) {
      call.counters->AddServed(call.request_bytes);
    }
  }
  call.autograd = std::move(header.autograd);
  return absl::OkStatus();
}

}  // namespace hawser::rpc
