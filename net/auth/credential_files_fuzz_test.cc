// Fuzz test: arbitrary bytes as the files of credentials: tokens, keys,
// certificates and revocation lists, as PEM text or as the DER inside of it,
// and the names in certificates.

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
#include "net/auth/role.h"
#include "net/auth/token.h"

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

void ReadAll(const std::string& pem) {
  CheckError(JobOf(pem).status());
  const absl::StatusOr<Identity> identity = IdentityOf(pem);
  CheckError(identity.status());
  if (identity.ok()) {
    HAWSER_CHECK(Validate(*identity).ok());
    const absl::StatusOr<Identity> again = ParseUri(ToUri(*identity));
    HAWSER_CHECK(again.ok() && again->worker == identity->worker);
  }
  CheckError(FieldsOf(pem).status());
  CheckError(CheckCertificate({.key = pem, .certificate = pem}, pem));
  CheckError(CheckCertificate(Authority(), Authority().certificate + pem));
  CheckError(RevocationListPrefix(pem).status());
  CheckError(MakeRevocationList(Authority(), {pem}, "").status());
  CheckError(MakeRevocationList(Authority(), {}, pem).status());
  CheckError(
      MakeRevocationList({.key = pem, .certificate = pem}, {}, "").status());
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

void CheckNames(fuzz::FuzzInput& input) {
  std::vector<std::string> uris;
  while (!input.empty()) uris.emplace_back(input.Bytes());
  const absl::StatusOr<Identity> identity = FindIdentity(uris);
  if (!identity.ok()) return;
  HAWSER_CHECK(Validate(*identity).ok());
  HAWSER_CHECK(CheckClaim(*identity, *identity).ok());
  CheckClaimedRoles("it", identity->roles, uris).IgnoreError();
  for (const std::string& role : identity->roles) {
    const auto again = ParseRoleUri(RoleUri(role));
    HAWSER_CHECK(again.ok() && again->value() == role);
  }
}

void CheckToken(std::string_view text) {
  const absl::StatusOr<std::string> token = ParseToken(text);
  if (!token.ok()) return;
  HAWSER_CHECK(token->size() == 64);
  HAWSER_CHECK(*ParseToken(*token) == *token);
}

void ReadFile(fuzz::FuzzInput& input) {
  constexpr size_t kAll = size_t{1} << 20;
  switch (input.Below(8)) {
    case 0:
      CheckToken(input.Take(kAll));
      break;
    case 1:
      ReadAll(std::string(input.Take(kAll)));
      break;
    case 2:
      ReadAll(ToPem("CERTIFICATE", input.Take(kAll)));
      break;
    case 3:
      ReadAll(ToPem("PRIVATE KEY", input.Take(kAll)));
      break;
    case 4:
      ReadAll(ToPem("X509 CRL", input.Take(kAll)));
      break;
    case 5: {
      const std::string pem = SignedCertificate(input.Take(kAll));
      if (!pem.empty()) ReadAll(pem);
      break;
    }
    case 6: {
      const std::string pem = SignedList(input.Take(kAll));
      if (!pem.empty()) {
        CheckError(MakeRevocationList(Authority(), {}, pem).status());
      }
      break;
    }
    default:
      CheckNames(input);
      break;
  }
}

}  // namespace
}  // namespace hawser::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::fuzz::FuzzInput input(data, size);
  hawser::net::ReadFile(input);
  return 0;
}
