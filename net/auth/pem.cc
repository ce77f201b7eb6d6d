#include "net/auth/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/strings/str_cat.h"

namespace hawser::net::internal {
namespace {

absl::Status Malformed(absl::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat("no ", what, " in PEM form"));
}

// Disables OpenSSL's prompt for a pass phrase.
int NoPassPhrase(char*, int, int, void*) { return -1; }

}  // namespace

absl::Status CryptoError(absl::string_view what) {
  char reason[256] = "";
  ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", reason));
}

Bio Reader(std::string_view pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<Key> ReadKey(std::string_view pem) {
  Key key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, &NoPassPhrase,
                                  nullptr));
  if (key == nullptr) return Malformed("unencrypted private key");
  return key;
}

absl::StatusOr<Certificate> ReadCertificate(BIO* bio) {
  Certificate certificate(
      PEM_read_bio_X509(bio, nullptr, &NoPassPhrase, nullptr));
  if (certificate == nullptr) return Malformed("certificate");
  return certificate;
}

absl::StatusOr<RevocationList> ReadRevocationList(std::string_view pem) {
  RevocationList list(PEM_read_bio_X509_CRL(Reader(pem).get(), nullptr,
                                            &NoPassPhrase, nullptr));
  if (list == nullptr) return Malformed("revocation list");
  return list;
}

}  // namespace hawser::net::internal
