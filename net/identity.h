// Who holds a certificate.

#ifndef HAWSER_NET_IDENTITY_H_
#define HAWSER_NET_IDENTITY_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::net {

// One worker of one job. A certificate says it in one subject alternative
// name, the URI "hawser://JOB/WORKER".
struct Identity {
  std::string job;
  std::string worker;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// kInvalidArgument unless both names are 1 to 127 letters, digits and "-_:.".
absl::Status Validate(const Identity& identity);

std::string ToUri(const Identity& identity);

// Whether `claimed`, which a message says its sender is, is `proven`, which the
// sender's certificate says: kUnauthenticated, naming both, if not.
absl::Status CheckClaim(const Identity& proven, const Identity& claimed);

// The identity that `uri` names exactly; kInvalidArgument for any other.
absl::StatusOr<Identity> ParseUri(std::string_view uri);

// The one worker that a certificate with the URIs `uris` names.
// kInvalidArgument if there is none, or two.
absl::StatusOr<Identity> FindIdentity(const std::vector<std::string>& uris);

// What clients that know only names of hosts, such as gRPC's of other
// languages, can want a server's certificate to be of: "WORKER.JOB.hawser", or,
// for any worker of the job, "JOB.hawser". Certificates have both beside the
// URI.
std::string HostNameOf(const Identity& identity);
std::string HostNameOfJob(std::string_view job);

}  // namespace hawser::net

#endif  // HAWSER_NET_IDENTITY_H_
