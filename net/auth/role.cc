#include "net/auth/role.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "async/status_macros.h"
#include "net/name.h"

namespace hawser::net {
namespace {

constexpr std::string_view kScheme = "hawser-role:";

}  // namespace

absl::Status ValidateRole(std::string_view role) {
  return ValidateName("role", role);
}

bool HasRole(const std::vector<std::string>& roles, std::string_view role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

bool MayUse(const std::vector<std::string>& roles,
            const std::vector<std::string>& allowed) {
  if (allowed.empty()) return roles.empty() || !HasRole(roles, kObserverRole);
  return std::any_of(roles.begin(), roles.end(), [&](const std::string& role) {
    return HasRole(allowed, role);
  });
}

absl::Status CheckClaimedRoles(std::string_view holder,
                               const std::vector<std::string>& proven,
                               const std::vector<std::string>& claimed) {
  const absl::string_view name(holder.data(), holder.size());
  // If a peer claims more roles than are proven, one of the first proven.size()
  // + 1 is unproven or a duplicate, so the rest need no check.
  const size_t num_checked = std::min(claimed.size(), proven.size() + 1);
  for (size_t i = 0; i < num_checked; ++i) {
    if (HasRole(proven, claimed[i])) continue;
    return absl::UnauthenticatedError(absl::StrCat(
        name, " claims the role '", absl::CHexEscape(claimed[i].substr(0, 127)),
        "', but its certificate has ", ToText(proven),
        "; issue one with `hawser certs issue --roles`"));
  }
  if (claimed.size() > proven.size()) {
    return absl::UnauthenticatedError(
        absl::StrCat(name, " claims the same role twice"));
  }
  return absl::OkStatus();
}

std::string RoleUri(std::string_view role) {
  return std::string(kScheme) + std::string(role);
}

absl::StatusOr<std::optional<std::string>> ParseRoleUri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  const std::string_view role = uri.substr(kScheme.size());
  RETURN_IF_ERROR(ValidateRole(role));
  return std::string(role);
}

std::string ToText(const std::vector<std::string>& roles) {
  if (roles.empty()) return "no role";
  return absl::StrCat(roles.size() == 1 ? "the role " : "the roles ",
                      absl::StrJoin(roles, ", "));
}

}  // namespace hawser::net
