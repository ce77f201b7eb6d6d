// Fuzz test: arbitrary bytes as the files of credentials: keys, certificates
// and revocation lists, as PEM text or as the DER inside of it.

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "bazel/fuzz/fuzz_input.h"
#include "net/auth/certificate.h"
#include "net/auth/identity.h"
#include "net/auth/pem.h"
#include "net/auth/revocation_list.h"

namespace hawser::net {
namespace {

const KeyAndCertificate& Authority() {
  static const KeyAndCertificate& authority =
      *new KeyAndCertificate(*MakeAuthority("job", absl::Hours(1)));
  return authority;
}

EVP_PKEY* AuthorityKey() {
  static EVP_PKEY* const key = internal::ReadKey(Authority().key)->release();
  return key;
}

std::string ToPem(const char* type, std::string_view der) {
  return absl::StrCat(
      "-----BEGIN ", type, "-----\n",
      absl::Base64Escape(absl::string_view(der.data(), der.size())),
      "\n-----END ", type, "-----\n");
}

void CheckError(const absl::Status& status) {
  HAWSER_CHECK(status.ok() || absl::IsInvalidArgument(status) ||
               absl::IsInternal(status))
      << status;
}

void CheckReading(const std::string& pem) {
  CheckError(JobOf(pem).status());
  const absl::StatusOr<Identity> identity = IdentityOf(pem);
  CheckError(identity.status());
  if (identity.ok()) {
    HAWSER_CHECK(Validate(*identity).ok());
    const absl::StatusOr<Identity> again = ParseUri(ToUri(*identity));
    HAWSER_CHECK(again.ok() && again->worker == identity->worker);
  }
  CheckError(FieldsOf(pem).status());
  CheckError(RevocationListPrefix(pem).status());
}

// One use of a file, as most of them take long.
void Use(const std::string& pem, size_t use) {
  switch (use) {
    case 0:
      CheckError(CheckCertificate({.key = pem, .certificate = pem}, pem));
      break;
    case 1:
      CheckError(CheckCertificate(Authority(), Authority().certificate + pem));
      break;
    case 2:
      CheckError(MakeRevocationList(Authority(), {pem}, "").status());
      break;
    case 3:
      CheckError(MakeRevocationList(Authority(), {}, pem).status());
      break;
    case 4:
      CheckError(MakeRevocationList({.key = pem, .certificate = pem}, {}, "")
                     .status());
      break;
    default:
      CheckReading(pem);
      break;
  }
}

// The authority signs what parses, as if it had issued it.
std::string SignedCertificate(std::string_view der) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const internal::Certificate certificate(
      d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
  if (certificate == nullptr ||
      X509_sign(certificate.get(), AuthorityKey(), EVP_sha256()) == 0) {
    return "";
  }
  const internal::Bio text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(text.get(), certificate.get());
  return internal::Written(text.get());
}

std::string SignedList(std::string_view der) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const internal::RevocationList list(
      d2i_X509_CRL(nullptr, &bytes, static_cast<long>(der.size())));
  if (list == nullptr ||
      X509_CRL_sign(list.get(), AuthorityKey(), EVP_sha256()) == 0) {
    return "";
  }
  const internal::Bio text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_CRL(text.get(), list.get());
  return internal::Written(text.get());
}

void ReadFile(fuzz::FuzzInput& input) {
  const size_t form = input.Below(6);
  const size_t use = input.Below(8);
  const std::string_view bytes = input.Take(size_t{1} << 20);
  std::string pem;
  switch (form) {
    case 0:
      pem = std::string(bytes);
      break;
    case 1:
      pem = ToPem("CERTIFICATE", bytes);
      break;
    case 2:
      pem = ToPem("PRIVATE KEY", bytes);
      break;
    case 3:
      pem = ToPem("X509 CRL", bytes);
      break;
    case 4:
      pem = SignedCertificate(bytes);
      break;
    default:
      pem = SignedList(bytes);
      break;
  }
  if (!pem.empty()) Use(pem, use);
}

}  // namespace
}  // namespace hawser::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::fuzz::FuzzInput input(data, size);
  hawser::net::ReadFile(input);
  return 0;
}
