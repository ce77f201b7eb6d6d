#include "rpc/agent/members/peer_directory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/wire_text.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/worker_run.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {
namespace {

// Maximum time that a call waits for a lookup of its worker.
constexpr absl::Duration kLookUpLimit = absl::Seconds(1);

}  // namespace

PeerDirectory::PeerDirectory(std::shared_ptr<AgentState> state,
                             WorkerDirectory* records, Transport* transport)
    : state_(std::move(state)), records_(records), transport_(transport) {}

std::shared_ptr<Peer> PeerDirectory::MakePeer(const WorkerInfo& worker) const {
  const WorkerInfo& self = state_->self();
  const RequestHeader header{
      .job = state_->job(),
      .source = self.name,
      .source_rank = self.id,
      .source_incarnation = self.incarnation,
      .destination = worker.name,
      .destination_incarnation = worker.incarnation,
      .call_id = 0,
      .autograd = std::nullopt,
  };
  return std::make_shared<Peer>(worker, EncodeRequestHeader(header),
                                transport_);
}

std::shared_ptr<Peer> PeerDirectory::Add(const WorkerInfo& worker) {
  std::shared_ptr<Peer> known = table_.FindByName(worker.name);
  if (known != nullptr && known->info().incarnation == worker.incarnation) {
    return known;
  }
  const std::shared_ptr<Peer> made = MakePeer(worker);
  std::shared_ptr<Peer> added = table_.Insert(made);
  // The log may have said that it departed before it was in the table.
  if (added == made && IsLost(worker.incarnation)) {
    added->MarkLost(absl::UnavailableError(
        absl::StrCat(ToString(worker), " is no member of the job any more")));
  }
  return added;
}

void PeerDirectory::Announce(const WorkerInfo& worker) {
  if (!IsLost(worker.incarnation)) table_.Announce(MakePeer(worker));
}

// The store is asked about a lost worker because the event of its restart may
// not have arrived yet. A restart in progress is not waited for.
absl::StatusOr<std::shared_ptr<Peer>> PeerDirectory::Find(
    const Destination& to, async::MonotonicTime deadline,
    bool store_reachable) {
  const std::shared_ptr<Peer> known = table_.Find(to);
  if (known != nullptr && (!known->lost() || !store_reachable)) return known;
  if (absl::Status status = net::CheckUtf8("the worker name", to.name());
      !status.ok()) {
    return WithErrorDetail(std::move(status), to.worker(),
                           /*maybe_applied=*/false);
  }
  // An inherited deadline may have passed.
  const absl::Duration limit = std::clamp(state_->TimeUntil(deadline),
                                          absl::ZeroDuration(), kLookUpLimit);
  absl::StatusOr<std::shared_ptr<Peer>> found = LookUp(to, known, limit);
  if (found.ok()) return found;
  absl::Status status = std::move(found).status();
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    if (known != nullptr) return known;
    const absl::StatusCode code = state_->clock().Now() >= deadline
                                      ? absl::StatusCode::kDeadlineExceeded
                                      : absl::StatusCode::kUnavailable;
    status = absl::Status(
        code, absl::StrCat(
                  ToString(state_->self()), " cannot look up ", to.ToString(),
                  ", as the store does not answer: ", status.message()));
  }
  return WithErrorDetail(std::move(status), to.worker(),
                         /*maybe_applied=*/false);
}

absl::StatusOr<std::optional<WorkerInfo>> PeerDirectory::ReadRecord(
    const Destination& to, absl::Duration limit) {
  if (const auto* id = std::get_if<WorkerId>(&to.to())) {
    return records_->FindById(*id, limit);
  }
  if (const auto* name = std::get_if<std::string>(&to.to())) {
    return records_->FindByName(*name, limit);
  }
  const WorkerInfo& worker = std::get<WorkerInfo>(to.to());
  return worker.name.empty() ? records_->FindById(worker.id, limit)
                             : records_->FindByName(worker.name, limit);
}

absl::StatusOr<std::shared_ptr<Peer>> PeerDirectory::LookUp(
    const Destination& to, const std::shared_ptr<Peer>& known,
    absl::Duration limit) {
  ASSIGN_OR_RETURN(const std::optional<WorkerInfo> found,
                   ReadRecord(to, limit));
  if (const auto* wanted = std::get_if<WorkerInfo>(&to.to())) {
    const WorkerInfo& worker = *wanted;
    if (found.has_value() && found->incarnation != worker.incarnation) {
      if (known != nullptr) return known;
      return absl::FailedPreconditionError(
          absl::StrCat(ToString(worker), " is not the one that has its ",
                       worker.name.empty() ? "rank" : "name", " now: that is ",
                       ToString(*found)));
    }
  }
  if (!found.has_value() || IsLost(found->incarnation)) {
    if (known != nullptr) return known;
    return absl::NotFoundError(absl::StrCat(ToString(state_->self()),
                                            " finds no ", to.ToString(),
                                            " in job '", state_->job(), "'"));
  }
  return Add(*found);
}

PeerDirectory::Queueing PeerDirectory::Enqueue(const WorkerInfo& worker,
                                               Confirmed& done) {
  async::MutexLock lock(&mutex_);
  const auto waiting = unconfirmed_.find(worker.name);
  if (waiting != unconfirmed_.end()) {
    if (waiting->second.size() >= kMaxCallsPerUnconfirmed) {
      return Queueing::kFull;
    }
    waiting->second.push_back({worker, std::move(done)});
    return Queueing::kQueued;
  }
  if (unconfirmed_.size() >= kMaxUnconfirmed) return Queueing::kFull;
  unconfirmed_[worker.name].push_back({worker, std::move(done)});
  if (num_lookups_ < kMaxLookups) {
    ++num_lookups_;
    return Queueing::kBegins;
  }
  queued_names_.push_back(worker.name);
  return Queueing::kQueued;
}

void PeerDirectory::Confirm(const WorkerInfo& worker, Confirmed done) {
  switch (Enqueue(worker, done)) {
    case Queueing::kBegins:
      BeginLookUpSender(worker.name);
      break;
    case Queueing::kQueued:
      break;
    case Queueing::kFull:
      std::move(done)(absl::UnavailableError(
          absl::StrCat(ToString(state_->self()),
                       " looks up too many senders to confirm that ",
                       ToString(worker), " is a member: call again later")));
      break;
  }
}

void PeerDirectory::BeginLookUpSender(const std::string& name) {
  state_->Post(state_->control_executor(),
               [this, name] { LookUpSender(name); });
}

void PeerDirectory::LookUpSender(const std::string& name) {
  std::vector<UnconfirmedCall> calls;
  {
    async::MutexLock lock(&mutex_);
    calls.swap(unconfirmed_[name]);
  }
  const absl::StatusOr<std::optional<WorkerInfo>> record =
      records_->FindByName(name);
  for (UnconfirmedCall& call : calls) {
    std::move(call.done)(AddSender(call.sender, record));
  }
  std::string next;
  {
    async::MutexLock lock(&mutex_);
    // The record may be older than the calls that came meanwhile.
    if (unconfirmed_[name].empty()) {
      unconfirmed_.erase(name);
    } else {
      queued_names_.push_back(name);
    }
    if (queued_names_.empty()) {
      --num_lookups_;
      return;
    }
    next = std::move(queued_names_.front());
    queued_names_.pop_front();
  }
  BeginLookUpSender(next);
}

absl::StatusOr<std::shared_ptr<Peer>> PeerDirectory::AddSender(
    const WorkerInfo& sender,
    const absl::StatusOr<std::optional<WorkerInfo>>& record) {
  if (!record.ok()) {
    return absl::UnavailableError(
        absl::StrCat(ToString(state_->self()), " cannot look up ",
                     ToString(sender), ": ", record.status().message()));
  }
  if (!record->has_value() || RunOf(**record) != RunOf(sender)) {
    return absl::FailedPreconditionError(absl::StrCat(
        ToString(sender), " is not a member of job '", state_->job(), "': ",
        record->has_value()
            ? absl::StrCat("its name is that of ", ToString(**record))
            : "nobody has its name"));
  }
  if (IsLost(sender.incarnation)) {
    return absl::UnavailableError(
        absl::StrCat(ToString(sender), " is no member of the job any more"));
  }
  return Add(**record);
}

bool PeerDirectory::IsLost(Incarnation incarnation) const {
  async::MutexLock lock(&mutex_);
  return lost_.contains(incarnation);
}

size_t PeerDirectory::num_lost() const {
  async::MutexLock lock(&mutex_);
  return lost_.size();
}

bool PeerDirectory::HasDeparted(Incarnation incarnation) const {
  async::MutexLock lock(&mutex_);
  return departed_.contains(incarnation);
}

void PeerDirectory::SetDeparted(Incarnation incarnation) {
  async::MutexLock lock(&mutex_);
  departed_.insert(incarnation);
}

PeerDirectory::Marking PeerDirectory::Mark(Incarnation incarnation) {
  {
    async::MutexLock lock(&mutex_);
    if (!lost_.insert(incarnation).second) return Marking::kMarkedBefore;
  }
  return FindByIncarnation(incarnation) != nullptr ? Marking::kMet
                                                   : Marking::kUnmet;
}

PeerDirectory::Marking PeerDirectory::MarkLeft(
    const std::shared_ptr<Peer>& peer, const absl::Status& status) {
  const Marking marking = Mark(peer->info().incarnation);
  if (marking == Marking::kMarkedBefore) return marking;
  peer->MarkLeft(status);
  // Another Peer may have been added after `peer` was looked for.
  const auto added = FindByIncarnation(peer->info().incarnation);
  if (added != nullptr && added != peer) added->MarkLeft(status);
  return marking;
}

PeerDirectory::Marking PeerDirectory::MarkLost(
    const std::shared_ptr<Peer>& peer, const absl::Status& status) {
  const Marking marking = Mark(peer->info().incarnation);
  if (marking == Marking::kMarkedBefore) return marking;
  peer->MarkLost(status);
  // As above.
  const auto added = FindByIncarnation(peer->info().incarnation);
  if (added != nullptr && added != peer) added->MarkLost(status);
  return marking;
}

}  // namespace hawser::rpc
