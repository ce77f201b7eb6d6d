// Credentials with which the processes of a job authenticate each other.

#ifndef HAWSER_NET_AUTH_CREDENTIALS_H_
#define HAWSER_NET_AUTH_CREDENTIALS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "net/auth/authorization_policy.h"
#include "net/auth/identity.h"

namespace hawser::net {

struct CredentialsOptions {
  // PEM files; all three, or none and no TLS. The key's must be private
  // (0600). Read again every `reload_interval`: replace them together, by
  // renaming a directory or turning a symbolic link.
  std::string certificate_path = {};
  std::string key_path = {};
  // What peers' certificates must be signed by.
  std::string ca_path = {};
  // Directory of certificate revocation lists, named as by `openssl rehash`;
  // none if empty. Needs TLS.
  std::string crl_directory = {};
  // A file with an operator's rules for the servers of the process, see
  // AuthorizationPolicy; none if empty. Needs TLS.
  std::string authorization_policy_path = {};
  // Of all these files. Whole seconds, 1 or more.
  absl::Duration reload_interval = absl::Seconds(10);

  // The job's token, 64 hexadecimal digits, which each call must carry: from a
  // private file (0600), or an inherited descriptor, which is closed. At most
  // one of them; no token if neither.
  std::string token_path = {};
  std::optional<int> token_fd = {};
};

// `options` with what it leaves out from the environment: HAWSER_TLS_CERT,
// HAWSER_TLS_KEY, HAWSER_TLS_CA, HAWSER_TLS_CRL_DIR (only where `options` names
// none of these), HAWSER_AUTHORIZATION_POLICY, and HAWSER_TOKEN_FILE.
CredentialsOptions WithEnvironment(CredentialsOptions options);

// A process's certificate and token, for its servers and its connections.
//
// With TLS both ends prove an identity (mutual TLS): the server's must be the
// one that is wanted, or at least of the same job (PeerVerification); the
// caller's is compared with what its messages claim. Without, nothing is
// encrypted and whoever reaches a server is heard if it has the token, where
// there is one.
//
// Thread-safe.
class Credentials {
 public:
  // Neither TLS nor token.
  static std::shared_ptr<const Credentials> Insecure();

  // Reads and checks everything. `self` is what the certificate must say, and
  // the roles that it must have among others; unset: it is believed.
  //
  //   kInvalidArgument  options that exclude each other; a certificate that is
  //                     malformed, expired, not of `ca_path`, or of another
  //                     worker, or without a role; a malformed token or
  //                     policy.
  //   kPermissionDenied others may read the key or the token.
  //   kNotFound         a file is missing.
  static absl::StatusOr<std::shared_ptr<const Credentials>> Create(
      const CredentialsOptions& options, std::optional<Identity> self);

  bool has_tls() const { return provider_ != nullptr; }
  bool has_token() const { return !authorization_.empty(); }
  bool has_authorization_policy() const { return policy_ != nullptr; }
  // What the certificate says; empty without TLS.
  const Identity& self() const { return self_; }

  // Whether the files still are what Create wanted of them, as kInvalidArgument
  // and the like; OK without TLS.
  absl::Status CheckFiles() const;

  // OK if a server may listen where other machines can reach it:
  // kFailedPrecondition in one line, saying what to do, without TLS, unless
  // `allow_insecure_network`; and then too if the process serves what debugs it
  // (net/server/debug_services.h).
  absl::Status CheckMayListen(std::string_view address,
                              bool allow_insecure_network) const;

  // A server with these refuses calls as MakeCallGate (net/auth/call_gate.h)
  // does, where there is a policy or the process serves what debugs it.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;

  // `verifier` runs at the end of the handshake; see PeerVerification.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(
      std::shared_ptr<grpc::experimental::CertificateVerifier> verifier) const;

  // Adds the token.
  void Sign(grpc::ClientContext& context) const;

  // Whether a call that a server took may be served: kUnauthenticated with the
  // reason if its token is missing or wrong, or its certificate is of another
  // job.
  absl::Status CheckCall(const grpc::ServerContextBase& context) const;

  // Whom the caller's certificate names: kUnauthenticated if it names nobody.
  // Nothing without TLS, where nobody knows.
  absl::StatusOr<std::optional<Identity>> Caller(
      const grpc::ServerContextBase& context) const;

  // Whether the caller may change what is here: kPermissionDenied if its
  // certificate is an observer's.
  absl::Status CheckMayChange(const grpc::ServerContextBase& context) const;

 private:
  Credentials() = default;

  // The identity that the certificate of the call's connection names.
  static absl::StatusOr<Identity> CallerOf(
      const grpc::ServerContextBase& context);

  // Null without TLS.
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
  // Null without.
  std::shared_ptr<AuthorizationPolicy> policy_;
  CredentialsOptions options_;
  Identity self_;
  // "Bearer " and the token; empty without.
  std::string authorization_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_CREDENTIALS_H_
