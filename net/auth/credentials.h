// Credentials by which the processes of a job authenticate each other.

#ifndef HAWSER_NET_AUTH_CREDENTIALS_H_
#define HAWSER_NET_AUTH_CREDENTIALS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/auth/authorization_policy.h"
#include "net/auth/credentials_options.h"
#include "net/auth/identity.h"

namespace grpc {
class ChannelCredentials;
class ClientContext;
class ServerContextBase;
class ServerCredentials;
namespace experimental {
class CertificateProviderInterface;
class CertificateVerifier;
}  // namespace experimental
}  // namespace grpc

namespace hawser::net {

// Returns `options` with unset fields taken from the environment:
// HAWSER_TLS_CERT, HAWSER_TLS_KEY and HAWSER_TLS_CA (only if `options` sets
// none of the three), HAWSER_TLS_CRL_DIR, HAWSER_AUTHORIZATION_POLICY, and
// HAWSER_TOKEN_FILE.
CredentialsOptions WithEnvironment(CredentialsOptions options);

// The certificate and token of a process, for its servers and its connections.
//
// With TLS both ends prove an identity (mutual TLS). The server's identity must
// be the expected worker, or at least a worker of the same job
// (PeerVerification). The caller's identity is compared with the one that its
// messages claim. Without TLS nothing is encrypted, and a server accepts every
// caller that can connect and has the token, if one is set.
//
// Thread-safe.
class Credentials {
 public:
  // Credentials with neither TLS nor token.
  static std::shared_ptr<const Credentials> Insecure();

  // Reads and checks all files. `self` is the identity that the certificate
  // must have, with the roles that it must include. If unset, any identity is
  // accepted.
  //
  //   kInvalidArgument  conflicting options; a certificate that is malformed,
  //                     expired, not signed by `ca_path`, for another worker or
  //                     lacks a role; a malformed token or policy.
  //   kPermissionDenied other users may read the key or the token.
  //   kNotFound         a file is missing.
  static absl::StatusOr<std::shared_ptr<const Credentials>> Create(
      const CredentialsOptions& options, std::optional<Identity> self);

  bool has_tls() const { return provider_ != nullptr; }
  bool has_token() const { return !authorization_.empty(); }
  bool has_authorization_policy() const { return policy_ != nullptr; }
  // The identity in the certificate; empty without TLS.
  const Identity& self() const { return self_; }

  // Checks the current files as Create does and returns its errors. OK without
  // TLS.
  absl::Status CheckFiles() const;

  // Checks whether a server may listen at an address that other machines can
  // reach. Without TLS returns kFailedPrecondition, one line with the remedy,
  // unless `allow_insecure_network` is set and the process serves no debug
  // services (net/server/debug_services.h).
  absl::Status CheckMayListen(std::string_view address,
                              bool allow_insecure_network) const;

  // Credentials of a server. Calls are checked by MakeAuthorizationInterceptor
  // (net/auth/authorization_interceptor.h) if there is a policy or the process
  // serves debug services.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;

  // `verifier` runs at the end of the handshake; see PeerVerification.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(
      std::shared_ptr<grpc::experimental::CertificateVerifier> verifier) const;

  // Adds the token to the call's metadata.
  void Sign(grpc::ClientContext& context) const;

  // Authenticates an incoming call. kUnauthenticated, with the reason, if its
  // token is missing or wrong or its certificate is for another job.
  absl::Status CheckCall(const grpc::ServerContextBase& context) const;

  // The caller for limits: the URI of its certificate, or without TLS its
  // connection.
  std::string ClientOf(const grpc::ServerContextBase& context) const;

  // Returns the identity in the caller's certificate. kUnauthenticated if it
  // has none. nullopt without TLS.
  absl::StatusOr<std::optional<Identity>> Caller(
      const grpc::ServerContextBase& context) const;

  // Checks whether the caller may change state: kPermissionDenied if its
  // certificate has the role observer.
  absl::Status CheckMayChange(const grpc::ServerContextBase& context) const;

 private:
  Credentials() = default;

  // Returns the identity in the certificate of the call's connection.
  static absl::StatusOr<Identity> CallerOf(
      const grpc::ServerContextBase& context);

  // Null without TLS.
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
  // Null without a policy.
  std::shared_ptr<AuthorizationPolicy> policy_;
  CredentialsOptions options_;
  Identity self_;
  // "Bearer " and the token; empty without a token.
  std::string authorization_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_CREDENTIALS_H_
