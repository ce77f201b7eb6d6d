// Certificates of a job: X.509 with P-256 keys, by OpenSSL.

#ifndef HAWSER_NET_AUTH_CERTIFICATE_H_
#define HAWSER_NET_AUTH_CERTIFICATE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/auth/identity.h"

namespace hawser::net {

// PEM texts; the key belongs to the certificate.
struct KeyAndCertificate {
  std::string key;
  std::string certificate;
};

// The authority of one job: signs certificates of its workers, and nothing
// below them. kInvalidArgument for a job's name that is not one.
absl::StatusOr<KeyAndCertificate> MakeAuthority(std::string_view job,
                                                absl::Duration lifetime);

// A certificate for both ends of a connection, valid from an hour ago, for
// clocks that differ. kInvalidArgument: `identity`, or a malformed authority.
absl::StatusOr<KeyAndCertificate> IssueCertificate(
    const KeyAndCertificate& authority, const Identity& identity,
    absl::Duration lifetime);

// The job of an authority that MakeAuthority made. kInvalidArgument for any
// other certificate.
absl::StatusOr<std::string> JobOf(std::string_view pem);

// What the first certificate of `pem` says it is for. kInvalidArgument unless
// it holds exactly one hawser:// name.
absl::StatusOr<Identity> IdentityOf(std::string_view pem);

// kInvalidArgument unless the key belongs to the certificate, some certificate
// of `authorities` (PEM) signed it, and it is valid now.
absl::Status CheckCertificate(const KeyAndCertificate& pair,
                              std::string_view authorities);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_CERTIFICATE_H_
