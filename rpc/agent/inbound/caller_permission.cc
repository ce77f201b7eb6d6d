#include "rpc/agent/inbound/caller_permission.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "net/auth/role.h"
#include "rpc/functions/function_registry.h"

namespace hawser::rpc {
namespace {

std::string RequiredRoles(const FunctionOptions& options) {
  return options.allowed_roles.empty() ? "any role but observer"
                                       : net::ToText(options.allowed_roles);
}

}  // namespace

absl::Status CallerPermission::CheckFunction(const RegisteredFunction& function,
                                             const WorkerInfo& caller,
                                             size_t request_bytes) const {
  const FunctionOptions& options = function.options();
  const WorkerInfo& self = state_->self();
  if (!net::MayUse(caller.roles, options.allowed_roles) &&
      (caller.incarnation != self.incarnation || caller.name != self.name)) {
    return absl::PermissionDeniedError(
        absl::StrCat(ToString(caller), " has ", net::ToText(caller.roles),
                     ", and may not call function '", function.name(),
                     "', which is for those with ", RequiredRoles(options)));
  }
  if (options.max_request_bytes != 0 &&
      request_bytes > options.max_request_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a request of ", request_bytes, " bytes exceeds the limit of ",
        options.max_request_bytes, " bytes of function '", function.name(),
        "'; send less, or raise its FunctionOptions::max_request_bytes"));
  }
  return absl::OkStatus();
}

absl::Status CallerPermission::CheckMethod(const RegisteredMethod& method,
                                           const WorkerInfo& caller) const {
  if (caller.roles.empty() || method.options.for_observers ||
      !net::HasRole(caller.roles, net::kObserverRole)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(ToString(caller), " has ", net::ToText(caller.roles),
                   ", and observers may not call ", method.definition->name));
}

}  // namespace hawser::rpc
