#ifndef HAWSER_RREF_ACCESS_LOCKED_VALUE_H_
#define HAWSER_RREF_ACCESS_LOCKED_VALUE_H_

#include <memory>
#include <utility>

#include "rref/access/async_shared_mutex.h"

namespace hawser::rref {

// Access to the object of a reference at its owner, from RRef::Lock (`T` is not
// const) or RRef::LockShared (`T` is const). While it is held, the object does
// not change, except through the one holder of exclusive access; docs/rref.md,
// G9, says which accesses exclude each other.
//
// A handle that is never empty. The access ends when the last copy is
// destroyed, including the copy in a Future. It may end on any thread, which
// then runs callbacks of those that wait for access. Keeps the object alive,
// but not the reference. Neither pointers to the object nor tensors that share
// its memory may be used after the end.
template <class T>
class LockedValue {
 public:
  LockedValue(std::shared_ptr<T> object, AsyncSharedMutex::Holder access)
      : object_(std::move(object)), access_(std::move(access)) {}

  T& operator*() const { return *object_; }
  T* operator->() const { return object_.get(); }

 private:
  std::shared_ptr<T> object_;
  // Released before the object, whose destructor may take long.
  AsyncSharedMutex::Holder access_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_ACCESS_LOCKED_VALUE_H_
