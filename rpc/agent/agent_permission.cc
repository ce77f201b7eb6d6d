#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/identity.h"
#include "net/auth/role.h"
#include "rpc/agent/agent_impl.h"

namespace hawser::rpc {
namespace {

std::string WantedRoles(const FunctionOptions& options) {
  return options.allowed_roles.empty() ? "any role but observer"
                                       : net::ToText(options.allowed_roles);
}

}  // namespace

absl::Status Agent::Impl::SettleOwnRoles() {
  for (const std::string& role : self_.roles) {
    if (absl::Status status = net::ValidateRole(role); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("AgentOptions::roles: ", status.message()));
    }
  }
  const std::optional<net::Identity> proven = options_.transport->identity();
  if (proven.has_value()) {
    const absl::Status status =
        net::CheckClaimedRoles(ToString(self_), proven->roles, self_.roles);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("AgentOptions::roles: ", status.message()));
    }
    if (self_.roles.empty()) self_.roles = proven->roles;
  }
  if (net::HasRole(proven.has_value() ? proven->roles : self_.roles,
                   net::kObserverRole)) {
    return absl::PermissionDeniedError(absl::StrCat(
        ToString(self_),
        " has the role observer: it may look at the job (`hawser list`, "
        "`hawser call`), but is no member"));
  }
  return absl::OkStatus();
}

// Where nobody has roles and nothing is set, a few comparisons.
absl::Status Agent::Impl::CheckPermission(const RegisteredFunction& function,
                                          const WorkerInfo& caller,
                                          size_t request_bytes) const {
  const FunctionOptions& options = function.options();
  if (!net::MayUse(caller.roles, options.allowed_roles) &&
      (caller.incarnation != self_.incarnation || caller.name != self_.name)) {
    return absl::PermissionDeniedError(
        absl::StrCat(ToString(caller), " has ", net::ToText(caller.roles),
                     ", and may not call function '", function.name(),
                     "', which is for those with ", WantedRoles(options)));
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

// With TLS each caller has shown its certificate. A caller that was unknown
// when its message was admitted may have become known since.
bool Agent::Impl::MayHaveOtherRoles(const WorkerInfo& caller) const {
  if (!caller.roles.empty() || options_.transport->identity().has_value()) {
    return false;
  }
  const std::shared_ptr<Peer> peer =
      peers_.FindByIncarnation(caller.incarnation);
  return peer == nullptr || !peer->info().roles.empty();
}

absl::Status Agent::Impl::LookUpPermission(const RegisteredFunction& function,
                                           WorkerInfo caller,
                                           size_t request_bytes) {
  if (const auto peer = peers_.FindByIncarnation(caller.incarnation)) {
    caller.roles = peer->info().roles;
  } else {
    ASSIGN_OR_RETURN(std::optional<WorkerInfo> found,
                     worker_directory_.FindByName(caller.name));
    if (found.has_value() && found->incarnation == caller.incarnation) {
      caller.roles = std::move(found->roles);
    }
  }
  return CheckPermission(function, caller, request_bytes);
}

absl::StatusOr<const RegisteredFunction*> Agent::Impl::FindFunction(
    const MethodCall& call, std::string_view name, std::string_view signature) {
  ASSIGN_OR_RETURN(const RegisteredFunction* const function,
                   options_.registry->Find(name, signature));
  absl::Status allowed =
      CheckPermission(*function, call.peer, call.request_bytes);
  if (!allowed.ok() && MayHaveOtherRoles(call.peer)) {
    allowed = LookUpPermission(*function, call.peer, call.request_bytes);
  }
  RETURN_IF_ERROR(allowed);
  return function;
}

absl::Status Agent::Impl::CheckObserver(const RegisteredMethod& method,
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
