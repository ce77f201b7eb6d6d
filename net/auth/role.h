// Roles: the permissions of a certificate's holder.

#ifndef HAWSER_NET_AUTH_ROLE_H_
#define HAWSER_NET_AUTH_ROLE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::net {

// A role is a name chosen by the job, such as "ps" or "trainer". The holder's
// certificate contains it as a subject alternative name, the URI
// "hawser-role:ps". Two roles are predefined.

// Read-only access, without membership in the job. May query the state of
// workers and stores, and call functions that list this role.
inline constexpr std::string_view kObserverRole = "observer";
// May call debug services (net/server/debug_services.h).
inline constexpr std::string_view kAdminRole = "admin";

// kInvalidArgument unless `role` is a name (net/name.h).
absl::Status ValidateRole(std::string_view role);

bool HasRole(const std::vector<std::string>& roles, std::string_view role);

// Whether a holder of `roles` may use something restricted to `allowed`. An
// empty `allowed` admits all but observers.
bool MayUse(const std::vector<std::string>& roles,
            const std::vector<std::string>& allowed);

// OK if `claimed` are distinct elements of `proven`. Otherwise
// kUnauthenticated, naming `holder` and the role at fault.
absl::Status CheckClaimedRoles(std::string_view holder,
                               const std::vector<std::string>& proven,
                               const std::vector<std::string>& claimed);

std::string RoleUri(std::string_view role);

// Returns the role in `uri`, or nullopt if it is not a role URI.
// kInvalidArgument if the role is not valid.
absl::StatusOr<std::optional<std::string>> ParseRoleUri(std::string_view uri);

// Formats roles for messages: "no role", or "the roles ps, trainer".
std::string ToText(const std::vector<std::string>& roles);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_ROLE_H_
