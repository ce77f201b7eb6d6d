#include "rref/method_scope.h"

#include <utility>

namespace hawser::rref {
namespace {

thread_local constinit const MethodScope* innermost = nullptr;

}  // namespace

MethodScope::MethodScope(const OwnerValue& value)
    : value_(&value), outer_(std::exchange(innermost, this)) {}

MethodScope::~MethodScope() { innermost = outer_; }

bool MethodScope::IsIn(const OwnerValue& value) {
  for (const MethodScope* scope = innermost; scope != nullptr;
       scope = scope->outer_) {
    if (scope->value_ == &value) return true;
  }
  return false;
}

}  // namespace hawser::rref
