#ifndef HAWSER_RREF_METHOD_SCOPE_H_
#define HAWSER_RREF_METHOD_SCOPE_H_

#include "rref/owner_value.h"

namespace hawser::rref {

// Marks, until the end of the scope, that a method with access to a value runs
// in this thread. A wait for access to the same value in this thread would
// never end.
class MethodScope {
 public:
  // `value` must outlive the scope.
  explicit MethodScope(const OwnerValue& value);
  ~MethodScope();
  MethodScope(const MethodScope&) = delete;
  MethodScope& operator=(const MethodScope&) = delete;

  // Whether this thread is in a scope of `value`.
  static bool IsIn(const OwnerValue& value);

 private:
  const OwnerValue* const value_;
  const MethodScope* const outer_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_METHOD_SCOPE_H_
