// Lists of a job's certificates that were revoked before they expired.

#ifndef HAWSER_NET_AUTH_REVOCATION_LIST_H_
#define HAWSER_NET_AUTH_REVOCATION_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "net/auth/certificate.h"

namespace hawser::net {

// Creates a revocation list (PEM) with `certificates` (PEM) and the entries of
// `previous`, the authority's previous list; empty for the first one. The new
// list has a later time, so readers prefer it to `previous`. It is valid as
// long as the authority.
//
// kInvalidArgument: an argument is malformed, or a certificate or `previous` is
// not signed by `authority`.
absl::StatusOr<std::string> MakeRevocationList(
    const KeyAndCertificate& authority,
    const std::vector<std::string>& certificates, std::string_view previous);

// File name prefix of an authority's lists in
// CredentialsOptions::crl_directory. The number of the list follows, "0" for
// the first.
absl::StatusOr<std::string> RevocationListPrefix(
    std::string_view authority_certificate);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_REVOCATION_LIST_H_
