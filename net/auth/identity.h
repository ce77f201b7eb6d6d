// Identity that a certificate proves.

#ifndef HAWSER_NET_AUTH_IDENTITY_H_
#define HAWSER_NET_AUTH_IDENTITY_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::net {

// One worker of one job. A certificate says it in subject alternative names:
// one URI "hawser://JOB/WORKER", and one per role (net/auth/role.h).
struct Identity {
  std::string job;
  std::string worker;
  std::vector<std::string> roles = {};

  friend bool operator==(const Identity&, const Identity&) = default;
};

// kInvalidArgument unless all names are as ValidateName (net/name.h) wants
// them.
absl::Status Validate(const Identity& identity);

// Without the roles.
std::string ToUri(const Identity& identity);

// Whether `claimed`, which a message says its sender is, is `proven`, which the
// sender's certificate says: kUnauthenticated, naming both, if not. Roles are
// not looked at: CheckClaimedRoles.
absl::Status CheckClaim(const Identity& proven, const Identity& claimed);

// The identity, without roles, that `uri` names exactly; kInvalidArgument for
// any other.
absl::StatusOr<Identity> ParseUri(std::string_view uri);

// The one worker that a certificate with the URIs `uris` names, and its roles.
// kInvalidArgument if there is none, or two, or a role that is not valid.
absl::StatusOr<Identity> FindIdentity(const std::vector<std::string>& uris);

// What clients that know only names of hosts, such as gRPC's of other
// languages, can want a server's certificate to be of: "WORKER.JOB.hawser", or,
// for any worker of the job, "JOB.hawser". Certificates have both beside the
// URI.
std::string HostNameOf(const Identity& identity);
std::string HostNameOfJob(std::string_view job);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_IDENTITY_H_
