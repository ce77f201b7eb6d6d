#ifndef HAWSER_RREF_OWNER_VALUE_H_
#define HAWSER_RREF_OWNER_VALUE_H_

#include <utility>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "rpc/functions/erased_value.h"
#include "rref/access/async_shared_mutex.h"

namespace hawser::rref {

// An object with shared access to it.
struct ReadableObject {
  rpc::ErasedValue object;
  AsyncSharedMutex::Holder access;
};

// The value of a reference at its owner. It is set once, to an object or to the
// error of the function that was to create it. Thread-safe.
class OwnerValue {
 public:
  OwnerValue() : future_(promise_.future()) {}
  explicit OwnerValue(rpc::ErasedValue object) : OwnerValue() {
    Set(std::move(object));
  }

  // Returns false if the value was set before.
  bool Set(absl::StatusOr<rpc::ErasedValue> object) {
    return promise_.Set(std::move(object));
  }

  const async::Future<rpc::ErasedValue>& future() const { return future_; }

  // Lock of the object and its memory: docs/rref.md, G9.
  AsyncSharedMutex& lock() { return lock_; }

 private:
  async::Promise<rpc::ErasedValue> promise_;
  async::Future<rpc::ErasedValue> future_;
  AsyncSharedMutex lock_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_OWNER_VALUE_H_
