#include "dist_autograd/context_container.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::dist_autograd {
namespace {

absl::Status WrongCreator(ContextId id, const rpc::WorkerRun& creator,
                          const rpc::WorkerInfo& peer) {
  return absl::InvalidArgumentError(
      absl::StrCat("worker '", peer.name, "' named incarnation ",
                   rpc::ToString(creator.incarnation),
                   " as the creator of distributed autograd context ",
                   ToString(id), ", which another incarnation created"));
}

absl::Status LostCreator(ContextId id) {
  return absl::AbortedError(absl::StrCat(
      "the worker that created distributed autograd context ", ToString(id),
      " is lost or out of reach, so no gradient could come back"));
}

}  // namespace

ContextContainer::ContextContainer(const rpc::WorkerRun& self,
                                   uint64_t id_start,
                                   const ContextLimits& limits)
    : self_(self),
      max_contexts_(limits.max_contexts),
      ids_(self.id.value(), id_start),
      quota_({.items = "distributed autograd contexts",
              .advice = "end some",
              .items_per_peer = {
                  .max = limits.max_contexts_per_peer,
                  .option = "ContextLimits::max_contexts_per_peer"}}) {}

absl::StatusOr<std::shared_ptr<Context>> ContextContainer::Create() {
  ASSIGN_OR_RETURN(const ContextId id, ids_.NextContextId());
  async::MutexLock lock(&mutex_);
  return AddLocked(id, self_, {});
}

absl::StatusOr<std::shared_ptr<Context>> ContextContainer::Find(
    ContextId id) const {
  async::MutexLock lock(&mutex_);
  auto it = contexts_.find(id);
  if (it == contexts_.end()) {
    return absl::NotFoundError(absl::StrCat(
        "distributed autograd context ", ToString(id),
        ended_.Contains(id) ? " has ended" : " is not known to this worker"));
  }
  return it->second.context;
}

absl::StatusOr<std::shared_ptr<Context>> ContextContainer::FindOrCreate(
    ContextId id, rpc::Incarnation creator_incarnation,
    const rpc::WorkerInfo& peer) {
  const rpc::WorkerRun creator{rpc::WorkerId(CreatorOf(id)),
                               creator_incarnation};
  async::MutexLock lock(&mutex_);
  if (lost_.Contains(peer.incarnation)) {
    return absl::AbortedError(absl::StrCat("worker '", peer.name, "' is lost"));
  }
  if (auto it = contexts_.find(id); it != contexts_.end()) {
    if (it->second.context->creator() != creator) {
      return WrongCreator(id, creator, peer);
    }
    it->second.context->AddSource(peer);
    return it->second.context;
  }
  // Nobody would notify of the end of a context of this incarnation under
  // another id.
  if (creator.incarnation == rpc::Incarnation{} ||
      (creator.incarnation == self_.incarnation && creator.id != self_.id)) {
    return WrongCreator(id, creator, peer);
  }
  // Without a record, a creator that others consider alive would miss gradients
  // and not know.
  if (lost_.Contains(creator.incarnation)) return LostCreator(id);
  if (const End* const end = ended_.Find(id)) {
    if (*end == End::kCutOff) return LostCreator(id);
    return nullptr;
  }
  // A context of this worker has been here from its creation.
  if (creator.id == self_.id) return nullptr;
  ASSIGN_OR_RETURN(net::PerPeerQuota::Reservation reservation,
                   quota_.Admit(peer.name));
  ASSIGN_OR_RETURN(std::shared_ptr<Context> context,
                   AddLocked(id, creator, std::move(reservation)));
  context->AddSource(peer);
  return context;
}

void ContextContainer::Refuse(const rpc::WorkerInfo& peer) {
  async::MutexLock lock(&mutex_);
  lost_.Add(peer.incarnation);
}

absl::Status ContextContainer::CheckCreator(const Context& context) const {
  async::MutexLock lock(&mutex_);
  const End* const end = ended_.Find(context.id());
  const bool cut_off = lost_.Contains(context.creator().incarnation) ||
                       (end != nullptr && *end == End::kCutOff);
  return cut_off ? LostCreator(context.id()) : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Context>> ContextContainer::AddLocked(
    ContextId id, const rpc::WorkerRun& creator,
    net::PerPeerQuota::Reservation reservation) {
  if (contexts_.size() >= max_contexts_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this worker holds ", contexts_.size(),
                     " distributed autograd contexts, as many as "
                     "ContextLimits::max_contexts allows: end some contexts or "
                     "raise the limit"));
  }
  auto context = std::make_shared<Context>(id, creator);
  contexts_.emplace(id, Entry{context, std::move(reservation)});
  return context;
}

std::shared_ptr<Context> ContextContainer::Remove(ContextId id, End end) {
  async::MutexLock lock(&mutex_);
  ended_.Add(id, end);
  auto it = contexts_.find(id);
  if (it == contexts_.end()) return nullptr;
  std::shared_ptr<Context> context = std::move(it->second.context);
  contexts_.erase(it);
  return context;
}

bool ContextContainer::HasEnded(ContextId id) const {
  async::MutexLock lock(&mutex_);
  return ended_.Contains(id);
}

std::vector<std::shared_ptr<Context>> ContextContainer::All() const {
  async::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<Context>> contexts;
  contexts.reserve(contexts_.size());
  for (const auto& [id, entry] : contexts_) contexts.push_back(entry.context);
  return contexts;
}

size_t ContextContainer::size() const {
  async::MutexLock lock(&mutex_);
  return contexts_.size();
}

}  // namespace hawser::dist_autograd
