#include "rref/reference.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rref/method_scope.h"
#include "rref/protocol.h"

namespace hawser::rref {

Reference::Reference(std::shared_ptr<Protocol> protocol, RRefId id, ForkId fork,
                     rpc::WorkerInfo owner, async::Future<void> confirmed)
    : protocol_(std::move(protocol)),
      id_(id),
      fork_(fork),
      owner_(std::move(owner)),
      confirmed_(std::move(confirmed)) {}

Reference::Reference(std::shared_ptr<Protocol> protocol, RRefId id,
                     rpc::WorkerInfo owner, std::shared_ptr<OwnerValue> value)
    : protocol_(std::move(protocol)),
      id_(id),
      fork_{id},
      owner_(std::move(owner)),
      confirmed_(async::MakeReadyFuture<void>(absl::OkStatus())),
      value_(std::move(value)) {}

Reference::Reference(std::shared_ptr<Protocol> protocol, RRefId id,
                     rpc::WorkerInfo owner, std::shared_ptr<OwnerValue> value,
                     async::Future<void> confirmed)
    : protocol_(std::move(protocol)),
      id_(id),
      fork_{id},
      owner_(std::move(owner)),
      confirmed_(std::move(confirmed)),
      value_(std::move(value)),
      keeps_entry_(true) {}

Reference::~Reference() {
  if (!is_owner()) {
    protocol_->Release(fork_);
  } else if (keeps_entry_) {
    protocol_->ReleaseEntry(id_);
  }
}

std::shared_ptr<async::WaitPoller> Reference::Request(
    std::vector<Fetch> fetches, std::optional<absl::Duration> timeout) {
  std::vector<std::shared_ptr<async::WaitPoller>> pollers;
  while (!fetches.empty()) {
    const std::shared_ptr<const Reference> first = fetches.front().reference;
    const auto others = std::stable_partition(
        fetches.begin(), fetches.end(), [&first](const Fetch& fetch) {
          return fetch.reference->owner_.incarnation ==
                     first->owner_.incarnation &&
                 fetch.reference->protocol_ == first->protocol_;
        });
    std::vector<Fetch> of_one_owner(std::make_move_iterator(fetches.begin()),
                                    std::make_move_iterator(others));
    fetches.erase(fetches.begin(), others);
    pollers.push_back(
        first->protocol_->Fetch(std::move(of_one_owner), timeout));
  }
  return async::PollerOfAll(std::move(pollers));
}

async::Future<ReadableObject> Reference::AwaitValue(
    std::optional<absl::Duration> timeout) const {
  return protocol_->AwaitOwnValue(id_, value_, timeout);
}

absl::Status Reference::CheckIsOwner() const {
  if (is_owner()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the value of reference ", id_.ToString(), " is on worker '", owner_.name,
      "', not on this worker '", protocol_->self().name,
      "': fetch a copy with ToHere, or run a function on its owner"));
}

absl::Status Reference::CheckMayWait() const {
  if (!is_owner() || !MethodScope::IsIn(*value_)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "a method of the object of reference ", id_.ToString(),
      " waits for access to this object, which it has itself: use the object "
      "that the method was given"));
}

}  // namespace hawser::rref
