#include "net/auth/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/pem.h"
#include "net/auth/role.h"

namespace hawser::net {
namespace {

using internal::Bio;
using internal::Certificate;
using internal::CryptoError;
using internal::Extension;
using internal::Key;
using internal::KeyContext;
using internal::Names;
using internal::ReadCertificate;
using internal::Reader;
using internal::ReadKey;
using internal::Store;
using internal::StoreContext;
using internal::Written;

constexpr absl::Duration kClockDifference = absl::Hours(1);

// URI of an authority, distinct from those of workers: "hawser-job:JOB".
constexpr char kJobScheme[] = "hawser-job:";

absl::StatusOr<Key> NewKey() {
  const KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr));
  EVP_PKEY* key = nullptr;
  if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1 ||
      EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(),
                                             NID_X9_62_prime256v1) != 1 ||
      EVP_PKEY_keygen(context.get(), &key) != 1) {
    return CryptoError("making a key");
  }
  return Key(key);
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(
      X509V3_EXT_nconf_nid(nullptr, &context, nid, value));
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool AddName(int type, const std::string& value, GENERAL_NAMES* names) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_IA5STRING* text = ASN1_IA5STRING_new();
  if (name == nullptr || text == nullptr ||
      ASN1_STRING_set(text, value.data(), static_cast<int>(value.size())) !=
          1) {
    ASN1_IA5STRING_free(text);
    GENERAL_NAME_free(name);
    return false;
  }
  GENERAL_NAME_set0_value(name, type, text);
  if (sk_GENERAL_NAME_push(names, name) == 0) {
    GENERAL_NAME_free(name);
    return false;
  }
  return true;
}

// Builds the names as objects, since OpenSSL's text form needs escaping.
bool AddNames(X509* certificate, const std::vector<std::string>& uris,
              const std::vector<std::string>& hosts) {
  const Names names(GENERAL_NAMES_new());
  if (names == nullptr) return false;
  for (const std::string& uri : uris) {
    if (!AddName(GEN_URI, uri, names.get())) return false;
  }
  for (const std::string& host : hosts) {
    if (!AddName(GEN_DNS, host, names.get())) return false;
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(),
                           /*crit=*/0, X509V3_ADD_DEFAULT) == 1;
}

std::vector<std::string> UrisOf(X509* certificate) {
  std::vector<std::string> uris;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = names == nullptr ? 0 : sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

bool SetName(X509* certificate, const std::string& common_name) {
  // A common name has at most 64 characters.
  const std::string shown = common_name.substr(0, 64);
  X509_NAME* name = X509_get_subject_name(certificate);
  return X509_NAME_add_entry_by_txt(
             name, "CN", MBSTRING_ASC,
             reinterpret_cast<const unsigned char*>(shown.data()),
             static_cast<int>(shown.size()), -1, 0) == 1;
}

bool SetSerialAndTimes(X509* certificate, absl::Duration lifetime) {
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return false;
  serial[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  const bool set =
      number != nullptr &&
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set &&
         X509_gmtime_adj(X509_getm_notBefore(certificate),
                         -absl::ToInt64Seconds(kClockDifference)) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate),
                         absl::ToInt64Seconds(lifetime)) != nullptr;
}

struct Draft {
  std::string common_name;
  absl::Duration lifetime;
  std::vector<std::string> uris;
  std::vector<std::string> hosts = {};
  // False for an authority.
  bool worker = false;
};

// Signs with the new key itself if there is no issuer.
absl::StatusOr<KeyAndCertificate> Make(const Draft& draft, X509* issuer,
                                       EVP_PKEY* issuer_key) {
  ASSIGN_OR_RETURN(const Key key, NewKey());
  const Certificate certificate(X509_new());
  X509* const made = certificate.get();
  X509* const signer = issuer != nullptr ? issuer : made;
  const bool worker = draft.worker;
  if (made == nullptr || X509_set_version(made, 2) != 1 ||
      !SetSerialAndTimes(made, draft.lifetime) ||
      !SetName(made, draft.common_name) ||
      X509_set_issuer_name(made, X509_get_subject_name(signer)) != 1 ||
      X509_set_pubkey(made, key.get()) != 1 ||
      !AddExtension(
          made, signer, NID_basic_constraints,
          worker ? "critical,CA:FALSE" : "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(made, signer, NID_key_usage,
                    worker ? "critical,digitalSignature"
                           : "critical,keyCertSign,cRLSign") ||
      !AddExtension(made, signer, NID_subject_key_identifier, "hash") ||
      !AddExtension(made, signer, NID_authority_key_identifier, "keyid") ||
      (worker && !AddExtension(made, signer, NID_ext_key_usage,
                               "serverAuth,clientAuth")) ||
      !AddNames(made, draft.uris, draft.hosts) ||
      X509_sign(made, issuer_key != nullptr ? issuer_key : key.get(),
                EVP_sha256()) == 0) {
    return CryptoError("making a certificate");
  }
  const Bio key_text(BIO_new(BIO_s_mem()));
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr,
                                    0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate_text.get(), made) != 1) {
    return CryptoError("writing a certificate");
  }
  return KeyAndCertificate{.key = Written(key_text.get()),
                           .certificate = Written(certificate_text.get())};
}

absl::StatusOr<std::string> NameText(const X509_NAME* name) {
  const Bio text(BIO_new(BIO_s_mem()));
  if (X509_NAME_print_ex(text.get(), name, 0, XN_FLAG_RFC2253) < 0) {
    return CryptoError("reading a name");
  }
  return Written(text.get());
}

absl::StatusOr<absl::Time> ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the certificate has a malformed time of validity");
  }
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::Status CheckLifetime(absl::Duration lifetime) {
  // X.509 times end with the year 9999; OpenSSL's ASN.1 functions take the
  // seconds as long.
  if (lifetime > absl::ZeroDuration() && lifetime <= absl::Hours(24 * 36500)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a certificate cannot be valid for ", absl::FormatDuration(lifetime)));
}

}  // namespace

absl::StatusOr<KeyAndCertificate> MakeAuthority(std::string_view job,
                                                absl::Duration lifetime) {
  RETURN_IF_ERROR(Validate({.job = std::string(job), .worker = "authority"}));
  RETURN_IF_ERROR(CheckLifetime(lifetime));
  return Make({.common_name = absl::StrCat("Hawser job ", std::string(job)),
               .lifetime = lifetime,
               .uris = {absl::StrCat(kJobScheme, std::string(job))}},
              nullptr, nullptr);
}

absl::StatusOr<KeyAndCertificate> IssueCertificate(
    const KeyAndCertificate& authority, const Identity& identity,
    absl::Duration lifetime) {
  RETURN_IF_ERROR(Validate(identity));
  RETURN_IF_ERROR(CheckLifetime(lifetime));
  ASSIGN_OR_RETURN(const Key key, ReadKey(authority.key));
  ASSIGN_OR_RETURN(const Certificate issuer,
                   ReadCertificate(Reader(authority.certificate).get()));
  if (X509_check_private_key(issuer.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the authority's key does not belong to its certificate");
  }
  std::vector<std::string> uris = {ToUri(identity)};
  std::transform(identity.roles.begin(), identity.roles.end(),
                 std::back_inserter(uris), &RoleUri);
  return Make({.common_name = identity.worker,
               .lifetime = lifetime,
               .uris = std::move(uris),
               .hosts = {HostNameOf(identity), HostNameOfJob(identity.job)},
               .worker = true},
              issuer.get(), key.get());
}

absl::StatusOr<std::string> JobOf(std::string_view pem) {
  ASSIGN_OR_RETURN(const Certificate certificate,
                   ReadCertificate(Reader(pem).get()));
  for (const std::string& uri : UrisOf(certificate.get())) {
    if (!uri.starts_with(kJobScheme)) continue;
    std::string job = uri.substr(sizeof(kJobScheme) - 1);
    RETURN_IF_ERROR(Validate({.job = job, .worker = "authority"}));
    return job;
  }
  return absl::InvalidArgumentError(
      "the certificate is not a job authority's; create one with `hawser certs "
      "init`");
}

absl::StatusOr<Identity> IdentityOf(std::string_view pem) {
  ASSIGN_OR_RETURN(const Certificate certificate,
                   ReadCertificate(Reader(pem).get()));
  return FindIdentity(UrisOf(certificate.get()));
}

absl::StatusOr<CertificateFields> FieldsOf(std::string_view pem) {
  ASSIGN_OR_RETURN(const Certificate certificate,
                   ReadCertificate(Reader(pem).get()));
  CertificateFields fields;
  ASSIGN_OR_RETURN(fields.subject,
                   NameText(X509_get_subject_name(certificate.get())));
  ASSIGN_OR_RETURN(fields.issuer,
                   NameText(X509_get_issuer_name(certificate.get())));
  ASSIGN_OR_RETURN(fields.valid_from,
                   ToTime(X509_get0_notBefore(certificate.get())));
  ASSIGN_OR_RETURN(fields.valid_until,
                   ToTime(X509_get0_notAfter(certificate.get())));
  return fields;
}

absl::Status CheckCertificate(const KeyAndCertificate& pair,
                              std::string_view authorities) {
  ASSIGN_OR_RETURN(const Key key, ReadKey(pair.key));
  ASSIGN_OR_RETURN(const Certificate certificate,
                   ReadCertificate(Reader(pair.certificate).get()));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the key does not belong to the certificate");
  }
  const Store store(X509_STORE_new());
  const Bio reader = Reader(authorities);
  absl::StatusOr<Certificate> authority = ReadCertificate(reader.get());
  RETURN_IF_ERROR(authority.status());
  while (authority.ok()) {
    if (X509_STORE_add_cert(store.get(), authority->get()) != 1) {
      return CryptoError("reading authorities");
    }
    authority = ReadCertificate(reader.get());
  }
  const StoreContext context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), certificate.get(),
                          nullptr) != 1) {
    return CryptoError("checking a certificate");
  }
  if (X509_verify_cert(context.get()) != 1) {
    const char* reason =
        X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("the certificate is not valid: ", reason));
  }
  return absl::OkStatus();
}

}  // namespace hawser::net
