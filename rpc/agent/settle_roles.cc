#include "rpc/agent/settle_roles.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "net/auth/identity.h"
#include "net/auth/role.h"

namespace hawser::rpc {

absl::Status SettleRoles(const Transport& transport, AgentState& state) {
  const WorkerInfo& self = state.self();
  const std::optional<net::Identity> proven = transport.identity();
  if (proven.has_value()) {
    const absl::Status status =
        net::CheckClaimedRoles(ToString(self), proven->roles, self.roles);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("AgentOptions::roles: ", status.message()));
    }
    if (self.roles.empty()) state.SetRoles(proven->roles);
  }
  if (net::HasRole(proven.has_value() ? proven->roles : self.roles,
                   net::kObserverRole)) {
    return absl::PermissionDeniedError(absl::StrCat(
        ToString(self),
        " has the role observer: it may look at the job (`hawser list`, "
        "`hawser call`), but is no member"));
  }
  return absl::OkStatus();
}

}  // namespace hawser::rpc
