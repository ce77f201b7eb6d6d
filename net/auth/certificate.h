// Certificates of a job: X.509 with P-256 keys, made with OpenSSL.

#ifndef HAWSER_NET_AUTH_CERTIFICATE_H_
#define HAWSER_NET_AUTH_CERTIFICATE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/auth/identity.h"

namespace hawser::net {

// A certificate and its private key, as PEM text.
struct KeyAndCertificate {
  std::string key;
  std::string certificate;
};

// Creates the certificate authority of one job, which signs certificates of
// workers but not of further authorities. kInvalidArgument if the job's name is
// not valid.
absl::StatusOr<KeyAndCertificate> MakeAuthority(std::string_view job,
                                                absl::Duration lifetime);

// Issues a certificate for both ends of a connection, valid from an hour ago to
// allow for clock skew. kInvalidArgument: `identity` is not valid or the
// authority is malformed.
absl::StatusOr<KeyAndCertificate> IssueCertificate(
    const KeyAndCertificate& authority, const Identity& identity,
    absl::Duration lifetime);

// Returns the job of an authority created by MakeAuthority. kInvalidArgument
// for any other certificate.
absl::StatusOr<std::string> JobOf(std::string_view pem);

// Returns the identity in the first certificate of `pem`. kInvalidArgument
// unless the certificate has exactly one hawser:// name.
absl::StatusOr<Identity> IdentityOf(std::string_view pem);

// Properties of a certificate that X.509 defines.
struct CertificateFields {
  // Names, such as "CN=server0", in the form of RFC 2253. Control characters
  // are escaped.
  std::string subject;
  std::string issuer;
  absl::Time valid_from;
  absl::Time valid_until;
};

// Returns the fields of the first certificate of `pem`, which is not verified.
// kInvalidArgument if it is malformed.
absl::StatusOr<CertificateFields> FieldsOf(std::string_view pem);

// Returns kInvalidArgument unless the key belongs to the certificate, the
// certificate is signed by one of `authorities` (PEM), and it is valid now.
absl::Status CheckCertificate(const KeyAndCertificate& pair,
                              std::string_view authorities);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_CERTIFICATE_H_
