// Identity proven by a certificate.

#ifndef HAWSER_NET_AUTH_IDENTITY_H_
#define HAWSER_NET_AUTH_IDENTITY_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::net {

// A worker of a job. A certificate holds it as subject alternative names: one
// URI "hawser://JOB/WORKER", and one URI per role (net/auth/role.h).
struct Identity {
  std::string job;
  std::string worker;
  std::vector<std::string> roles = {};

  friend bool operator==(const Identity&, const Identity&) = default;
};

// kInvalidArgument unless ValidateName (net/name.h) accepts all names.
absl::Status Validate(const Identity& identity);

// Returns "hawser://JOB/WORKER", without the roles.
std::string ToUri(const Identity& identity);

// Checks that `claimed`, the sender's identity according to a message, equals
// `proven`, the identity in the sender's certificate. kUnauthenticated, naming
// both, if not. Ignores roles; see CheckClaimedRoles.
absl::Status CheckClaim(const Identity& proven, const Identity& claimed);

// Parses an identity, without roles, from `uri`. kInvalidArgument if it is not
// of that form.
absl::StatusOr<Identity> ParseUri(std::string_view uri);

// Returns the worker, with its roles, named by a certificate with the URIs
// `uris`. kInvalidArgument if they name no worker or several, or if a role is
// not valid.
absl::StatusOr<Identity> FindIdentity(const std::vector<std::string>& uris);

// Host names for clients that can verify only host names in a server's
// certificate, such as gRPC clients in other languages: "WORKER.JOB.hawser", or
// "JOB.hawser" for any worker of the job. Certificates contain both besides the
// URI.
std::string HostNameOf(const Identity& identity);
std::string HostNameOfJob(std::string_view job);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_IDENTITY_H_
