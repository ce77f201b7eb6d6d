// Owning types of OpenSSL objects, and conversion to and from PEM.

#ifndef HAWSER_NET_AUTH_PEM_H_
#define HAWSER_NET_AUTH_PEM_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hawser::net::internal {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;
using Store = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>>;

using RevocationList = std::unique_ptr<X509_CRL, Free<X509_CRL_free>>;

// Returns OpenSSL's last error as kInternal, prefixed with `what`, and clears
// it.
absl::Status CryptoError(absl::string_view what);

// A BIO that reads `pem`, which must outlive it.
Bio Reader(std::string_view pem);
// Returns the bytes written to a memory BIO.
std::string Written(BIO* bio);

// Reads a private key. kInvalidArgument for anything else, including keys
// encrypted with a pass phrase.
absl::StatusOr<Key> ReadKey(std::string_view pem);
// Reads the next certificate of `bio`.
absl::StatusOr<Certificate> ReadCertificate(BIO* bio);
absl::StatusOr<RevocationList> ReadRevocationList(std::string_view pem);

}  // namespace hawser::net::internal

#endif  // HAWSER_NET_AUTH_PEM_H_
