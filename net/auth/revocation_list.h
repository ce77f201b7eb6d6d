// Certificates of a job that hold no longer, though they have not expired.

#ifndef HAWSER_NET_AUTH_REVOCATION_LIST_H_
#define HAWSER_NET_AUTH_REVOCATION_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "net/auth/certificate.h"

namespace hawser::net {

// The list, in PEM form, of `certificates` (PEM) and those of `previous`, the
// authority's list before; empty if it is the first. Readers prefer it to
// `previous`. It holds as long as the authority does.
//
// kInvalidArgument: a text is malformed, or a certificate or `previous` is not
// of `authority`.
absl::StatusOr<std::string> MakeRevocationList(
    const KeyAndCertificate& authority,
    const std::vector<std::string>& certificates, std::string_view previous);

// What the names of an authority's lists begin with in a directory of
// CredentialsOptions::crl_directory: their numbers follow, "0" for the first.
absl::StatusOr<std::string> RevocationListPrefix(
    std::string_view authority_certificate);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_REVOCATION_LIST_H_
