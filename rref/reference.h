#ifndef HAWSER_RREF_REFERENCE_H_
#define HAWSER_RREF_REFERENCE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "rpc/functions/erased_value.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/decoder.h"
#include "rref/ids.h"
#include "rref/owner_value.h"

namespace hawser::rref {

class Protocol;

// One copy of a reference, its type hidden: what RRef<T> handles share. Its
// destruction tells the owner. Constant after construction; thread-safe.
class Reference {
 public:
  // Gets a decoder on the value, valid in the callback.
  using Fetched = absl::AnyInvocable<void(absl::StatusOr<rpc::Decoder*>) &&>;

  // A user's copy; `confirmed` completes with the owner's knowing of it.
  Reference(std::shared_ptr<Protocol> protocol, RRefId id, ForkId fork,
            rpc::WorkerInfo owner, async::Future<void> confirmed);
  // The owner's, confirmed.
  Reference(std::shared_ptr<Protocol> protocol, RRefId id,
            rpc::WorkerInfo owner, std::shared_ptr<OwnerValue> value);
  // The owner's that it created itself; `confirmed` completes with the
  // creation. Stands for fork id() in the owner's table, so that messages which
  // name the reference find the value.
  Reference(std::shared_ptr<Protocol> protocol, RRefId id,
            rpc::WorkerInfo owner, std::shared_ptr<OwnerValue> value,
            async::Future<void> confirmed);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  RRefId id() const { return id_; }
  // Equal to id() at the owner.
  ForkId fork() const { return fork_; }
  const rpc::WorkerInfo& owner() const { return owner_; }
  bool is_owner() const { return value_ != nullptr; }

  // Completes when the owner knows this copy: for a creation, also by the
  // owner itself, when the function has ended. Ready for the owner's others.
  const async::Future<void>& confirmed() const { return confirmed_; }

  // Asks the owner for the value, which must be of type `type_name`; not for
  // the owner itself. Errors: rref/rref.h. `await`: this thread will wait for
  // it (rpc::MethodCallOptions::await).
  void Fetch(std::string_view type_name, bool await,
             std::optional<absl::Duration> timeout, Fetched done) const;

  // The value at the owner, waited for as long as Fetch waits. For the owner
  // alone. Errors: rref/rref.h.
  async::Future<rpc::ErasedValue> AwaitValue(
      std::optional<absl::Duration> timeout) const;

  // The value here; null unless is_owner().
  const std::shared_ptr<OwnerValue>& value() const { return value_; }

  // kFailedPrecondition, naming the reference and both workers, unless
  // is_owner().
  absl::Status CheckIsOwner() const;

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
