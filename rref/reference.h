#ifndef HAWSER_RREF_REFERENCE_H_
#define HAWSER_RREF_REFERENCE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/wait_poller.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/decoder.h"
#include "rref/ids.h"
#include "rref/owner_value.h"

namespace hawser::rref {

class Protocol;

// One copy of a reference without its static type, shared by RRef<T> handles.
// The destructor notifies the owner. Constant after construction; thread-safe.
class Reference {
 public:
  // Receives a decoder of the value, which is valid during the callback.
  using Fetched = absl::AnyInvocable<void(absl::StatusOr<rpc::Decoder*>) &&>;

  // A user's copy. `confirmed` completes once the owner knows it.
  Reference(std::shared_ptr<Protocol> protocol, RRefId id, ForkId fork,
            rpc::WorkerInfo owner, async::Future<void> confirmed);
  // A copy at the owner, which is confirmed.
  Reference(std::shared_ptr<Protocol> protocol, RRefId id,
            rpc::WorkerInfo owner, std::shared_ptr<OwnerValue> value);
  // A copy at the owner, which also created it. `confirmed` completes with the
  // creation. Represents fork id() in the owner's table, so that messages that
  // name the reference find the value.
  Reference(std::shared_ptr<Protocol> protocol, RRefId id,
            rpc::WorkerInfo owner, std::shared_ptr<OwnerValue> value,
            async::Future<void> confirmed);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  RRefId id() const { return id_; }
  // Equals id() at the owner.
  ForkId fork() const { return fork_; }
  const rpc::WorkerInfo& owner() const { return owner_; }
  bool is_owner() const { return value_ != nullptr; }

  // Completes when the owner knows this copy. For a creation, also one on the
  // owner itself, this is when the function has ended. Always ready for other
  // copies at the owner.
  const async::Future<void>& confirmed() const { return confirmed_; }

  // A request of the value, which must be of type `type_name`. Must not be made
  // at the owner. Errors: rref/rref.h.
  struct Fetch {
    std::shared_ptr<const Reference> reference;
    std::string type_name;
    Fetched done;
  };
  // Makes the requests, those of one owner in one message. Returns the poller
  // of the futures that depend on them; null if there is none.
  static std::shared_ptr<async::WaitPoller> Request(
      std::vector<Fetch> fetches, std::optional<absl::Duration> timeout);

  // Returns the value at the owner, with the same timeout as Fetch. Must be
  // called only at the owner. Errors: rref/rref.h.
  async::Future<ReadableObject> AwaitValue(
      std::optional<absl::Duration> timeout) const;

  // The value on this worker; null unless is_owner().
  const std::shared_ptr<OwnerValue>& value() const { return value_; }

  // Returns kFailedPrecondition, naming the reference and both workers, unless
  // is_owner().
  absl::Status CheckIsOwner() const;

  // Returns kFailedPrecondition, naming the reference, if a method that runs in
  // this thread has access to the value, so that this thread would wait forever
  // for access of its own.
  absl::Status CheckMayWait() const;

  Protocol& protocol() const { return *protocol_; }

 private:
  const std::shared_ptr<Protocol> protocol_;
  const RRefId id_;
  const ForkId fork_;
  const rpc::WorkerInfo owner_;
  const async::Future<void> confirmed_;
  const std::shared_ptr<OwnerValue> value_;
  const bool keeps_entry_ = false;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_REFERENCE_H_
