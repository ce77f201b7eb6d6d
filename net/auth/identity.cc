#include "net/auth/identity.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/role.h"
#include "net/name.h"

namespace hawser::net {
namespace {

constexpr std::string_view kScheme = "hawser://";
}  // namespace

absl::Status Validate(const Identity& identity) {
  RETURN_IF_ERROR(ValidateName("job", identity.job));
  for (const std::string& role : identity.roles) {
    RETURN_IF_ERROR(ValidateRole(role));
  }
  return ValidateName("worker", identity.worker);
}

std::string ToUri(const Identity& identity) {
  return std::string(kScheme) + identity.job + "/" + identity.worker;
}

absl::StatusOr<Identity> ParseUri(std::string_view uri) {
  const size_t slash =
      uri.starts_with(kScheme) ? uri.find('/', kScheme.size()) : uri.npos;
  if (slash == uri.npos) {
    return absl::InvalidArgumentError(
        "the name of a certificate must be hawser://JOB/WORKER");
  }
  Identity identity{
      .job = std::string(uri.substr(kScheme.size(), slash - kScheme.size())),
      .worker = std::string(uri.substr(slash + 1))};
  RETURN_IF_ERROR(Validate(identity));
  return identity;
}

absl::Status CheckClaim(const Identity& proven, const Identity& claimed) {
  if (proven.job == claimed.job && proven.worker == claimed.worker) {
    return absl::OkStatus();
  }
  // Validate before repeating a peer's text in an error.
  RETURN_IF_ERROR(Validate(claimed));
  return absl::UnauthenticatedError(
      absl::StrCat("the message claims to be from ", ToUri(claimed),
                   ", but the caller's certificate is for ", ToUri(proven)));
}

absl::StatusOr<Identity> FindIdentity(const std::vector<std::string>& uris) {
  std::optional<Identity> found;
  std::vector<std::string> roles;
  for (const std::string& uri : uris) {
    ASSIGN_OR_RETURN(std::optional<std::string> role, ParseRoleUri(uri));
    if (role.has_value()) {
      roles.push_back(*std::move(role));
      continue;
    }
    absl::StatusOr<Identity> identity = ParseUri(uri);
    if (!identity.ok()) continue;
    if (found.has_value()) {
      return absl::InvalidArgumentError("the certificate names two workers");
    }
    found = *std::move(identity);
  }
  if (found.has_value()) {
    found->roles = std::move(roles);
    return *std::move(found);
  }
  return absl::InvalidArgumentError(
      "the certificate names no worker (URI hawser://JOB/WORKER); create one "
      "with `hawser certs issue`");
}

std::string HostNameOf(const Identity& identity) {
  return identity.worker + "." + HostNameOfJob(identity.job);
}

std::string HostNameOfJob(std::string_view job) {
  return std::string(job) + ".hawser";
}

}  // namespace hawser::net
