// Roles, the permissions of a certificate's holder.

#ifndef HAWSER_NET_AUTH_ROLE_H_
#define HAWSER_NET_AUTH_ROLE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::net {

// A role is a word of the job's own, such as "ps" or "trainer", in a subject
// alternative name of the holder's certificate: the URI "hawser-role:ps". Two
// have a meaning of their own.

// Looks only: changes nothing, and is no member of the job. It may ask workers
// and stores what they are and hold, and call the functions that name it.
inline constexpr std::string_view kObserverRole = "observer";
// May use what debugs a process (net/server/debug_services.h).
inline constexpr std::string_view kAdminRole = "admin";

// kInvalidArgument unless `role` is a name (net/name.h).
absl::Status ValidateRole(std::string_view role);

bool HasRole(const std::vector<std::string>& roles, std::string_view role);

// Whether who has `roles` may do what is for those with one of `allowed`, or,
// where that is empty, for all but observers.
bool MayUse(const std::vector<std::string>& roles,
            const std::vector<std::string>& allowed);

// OK if `claimed` are different ones of `proven`; kUnauthenticated naming one
// that is not, as of `holder`.
absl::Status CheckClaimedRoles(std::string_view holder,
                               const std::vector<std::string>& proven,
                               const std::vector<std::string>& claimed);

std::string RoleUri(std::string_view role);

// The role that `uri` names; none if it is of another kind. kInvalidArgument if
// the role is not valid.
absl::StatusOr<std::optional<std::string>> ParseRoleUri(std::string_view uri);

// "no role", or "the roles ps, trainer".
std::string ToText(const std::vector<std::string>& roles);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_ROLE_H_
