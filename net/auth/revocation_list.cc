#include "net/auth/revocation_list.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "async/status_macros.h"
#include "net/auth/pem.h"

namespace hawser::net {
namespace {

using internal::Bio;
using internal::Certificate;
using internal::CryptoError;
using internal::Free;
using internal::Key;
using internal::ReadCertificate;
using internal::Reader;
using internal::ReadKey;
using internal::RevocationList;
using internal::Written;

using Time = std::unique_ptr<ASN1_TIME, Free<ASN1_TIME_free>>;
using Revoked = std::unique_ptr<X509_REVOKED, Free<X509_REVOKED_free>>;

// Allows for clock skew.
constexpr time_t kClockDifferenceSeconds = 3600;

// Seconds since the epoch.
absl::StatusOr<time_t> ToSeconds(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return absl::InvalidArgumentError("the revocation list has no time");
  }
  return timegm(&parts);
}

// The entry has no reason code.
absl::Status Add(X509_CRL* list, const ASN1_INTEGER* serial,
                 const ASN1_TIME* when) {
  Revoked revoked(X509_REVOKED_new());
  if (revoked == nullptr ||
      X509_REVOKED_set_serialNumber(revoked.get(),
                                    const_cast<ASN1_INTEGER*>(serial)) != 1 ||
      X509_REVOKED_set_revocationDate(revoked.get(),
                                      const_cast<ASN1_TIME*>(when)) != 1 ||
      X509_CRL_add0_revoked(list, revoked.get()) != 1) {
    return CryptoError("revoking a certificate");
  }
  // The list owns the entry now.
  (void)revoked.release();
  return absl::OkStatus();
}

// Copies the entries of `previous`, a list signed by the authority; returns its
// time.
absl::StatusOr<time_t> Continue(std::string_view previous, EVP_PKEY* key,
                                X509_CRL* list) {
  ASSIGN_OR_RETURN(const RevocationList old,
                   internal::ReadRevocationList(previous));
  if (X509_CRL_verify(old.get(), key) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the previous revocation list is not signed by this authority");
  }
  STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(old.get());
  const int count = entries == nullptr ? 0 : sk_X509_REVOKED_num(entries);
  for (int i = 0; i < count; ++i) {
    const X509_REVOKED* entry = sk_X509_REVOKED_value(entries, i);
    RETURN_IF_ERROR(Add(list, X509_REVOKED_get0_serialNumber(entry),
                        X509_REVOKED_get0_revocationDate(entry)));
  }
  return ToSeconds(X509_CRL_get0_lastUpdate(old.get()));
}

absl::Status Revoke(const std::string& pem, EVP_PKEY* key,
                    const ASN1_TIME* when, X509_CRL* list) {
  ASSIGN_OR_RETURN(const Certificate certificate,
                   ReadCertificate(Reader(pem).get()));
  if (X509_verify(certificate.get(), key) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "a certificate to revoke is not signed by this authority");
  }
  X509_REVOKED* entry = nullptr;
  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate.get());
  // Already revoked.
  if (X509_CRL_get0_by_serial(list, &entry,
                              const_cast<ASN1_INTEGER*>(serial)) != 0) {
    return absl::OkStatus();
  }
  return Add(list, serial, when);
}

}  // namespace

absl::StatusOr<std::string> MakeRevocationList(
    const KeyAndCertificate& authority,
    const std::vector<std::string>& certificates, std::string_view previous) {
  ASSIGN_OR_RETURN(const Key key, ReadKey(authority.key));
  ASSIGN_OR_RETURN(const Certificate issuer,
                   ReadCertificate(Reader(authority.certificate).get()));
  if (X509_check_private_key(issuer.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the authority's key does not belong to its certificate");
  }
  const RevocationList list(X509_CRL_new());
  time_t time = std::time(nullptr) - kClockDifferenceSeconds;
  if (!previous.empty()) {
    ASSIGN_OR_RETURN(const time_t before,
                     Continue(previous, key.get(), list.get()));
    // OpenSSL uses the list with the later time.
    time = std::max(time, before + 1);
  }
  const Time now(ASN1_TIME_set(nullptr, time));
  for (const std::string& pem : certificates) {
    RETURN_IF_ERROR(Revoke(pem, key.get(), now.get(), list.get()));
  }
  if (X509_CRL_set_version(list.get(), 1) != 1 ||
      X509_CRL_set_issuer_name(list.get(),
                               X509_get_subject_name(issuer.get())) != 1 ||
      X509_CRL_set1_lastUpdate(list.get(), now.get()) != 1 ||
      X509_CRL_set1_nextUpdate(list.get(), X509_get0_notAfter(issuer.get())) !=
          1 ||
      X509_CRL_sort(list.get()) != 1 ||
      X509_CRL_sign(list.get(), key.get(), EVP_sha256()) == 0) {
    return CryptoError("making a revocation list");
  }
  const Bio text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_CRL(text.get(), list.get()) != 1) {
    return CryptoError("writing a revocation list");
  }
  return Written(text.get());
}

absl::StatusOr<std::string> RevocationListPrefix(
    std::string_view authority_certificate) {
  ASSIGN_OR_RETURN(const Certificate issuer,
                   ReadCertificate(Reader(authority_certificate).get()));
  return absl::StrFormat("%08x.r", X509_subject_name_hash(issuer.get()));
}

}  // namespace hawser::net
