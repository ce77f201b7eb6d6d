#include "net/auth/credentials.h"

#include <dirent.h>
#include <openssl/crypto.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "fs/private_file.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "net/auth/authorization_interceptor.h"
#include "net/auth/certificate.h"
#include "net/auth/job_verifier.h"
#include "net/auth/role.h"
#include "net/auth/token.h"
#include "net/server/debug_services.h"

namespace hawser::net {
namespace {

constexpr char kAuthorization[] = "authorization";
// Property of gRPC's auth contexts that holds a certificate's URIs.
constexpr char kPeerUri[] = "peer_uri";

absl::Status Of(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

bool HasTlsPath(const CredentialsOptions& options) {
  return !options.certificate_path.empty() || !options.key_path.empty() ||
         !options.ca_path.empty();
}

absl::Status CheckOptions(const CredentialsOptions& options) {
  const bool all = !options.certificate_path.empty() &&
                   !options.key_path.empty() && !options.ca_path.empty();
  if (HasTlsPath(options) && !all) {
    return absl::InvalidArgumentError(
        "TLS needs a certificate, its key and a CA: set all three or none");
  }
  if (!all && !options.crl_directory.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a directory of revocation lists is set (", options.crl_directory,
        ", CredentialsOptions::crl_directory or HAWSER_TLS_CRL_DIR) without "
        "certificates: set the certificate, its key and the CA, or no "
        "directory"));
  }
  if (!all && !options.authorization_policy_path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an authorization policy is set (", options.authorization_policy_path,
        ") without certificates: callers could not prove their names"));
  }
  if (options.reload_interval < absl::Seconds(1) ||
      options.reload_interval > absl::Hours(24 * 365)) {
    return absl::InvalidArgumentError(
        "CredentialsOptions::reload_interval must be between one second and "
        "one year");
  }
  if (!options.token_path.empty() && options.token_fd.has_value()) {
    return absl::InvalidArgumentError(
        "both a token file and a token descriptor are set: set only one");
  }
  return absl::OkStatus();
}

// gRPC ignores a directory that it cannot read.
absl::Status CheckCrlDirectory(const std::string& path) {
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrCat("cannot read the directory of revocation lists ", path));
  }
  closedir(directory);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadToken(const CredentialsOptions& options) {
  if (!options.token_path.empty()) {
    ASSIGN_OR_RETURN(const std::string text,
                     fs::ReadPrivateFile(options.token_path));
    absl::StatusOr<std::string> token = ParseToken(text);
    if (!token.ok()) return Of(token.status(), options.token_path);
    return token;
  }
  if (!options.token_fd.has_value()) return std::string();
  ASSIGN_OR_RETURN(const std::string text,
                   fs::ReadPrivateDescriptor(*options.token_fd));
  return ParseToken(text);
}

absl::StatusOr<Identity> CheckFiles(const CredentialsOptions& options) {
  KeyAndCertificate own;
  ASSIGN_OR_RETURN(own.certificate,
                   fs::ReadPublicFile(options.certificate_path));
  ASSIGN_OR_RETURN(own.key, fs::ReadPrivateFile(options.key_path));
  ASSIGN_OR_RETURN(const std::string authorities,
                   fs::ReadPublicFile(options.ca_path));
  absl::Status status = CheckCertificate(own, authorities);
  if (!status.ok()) return Of(status, options.certificate_path);
  absl::StatusOr<Identity> identity = IdentityOf(own.certificate);
  if (!identity.ok()) return Of(identity.status(), options.certificate_path);
  return identity;
}

}  // namespace

CredentialsOptions WithEnvironment(CredentialsOptions options) {
  const auto fill = [](std::string& path, const char* variable) {
    const char* value = std::getenv(variable);
    if (path.empty() && value != nullptr) path = value;
  };
  if (!HasTlsPath(options)) {
    fill(options.certificate_path, "HAWSER_TLS_CERT");
    fill(options.key_path, "HAWSER_TLS_KEY");
    fill(options.ca_path, "HAWSER_TLS_CA");
  }
  // Also beside certificates of the program: a list that takes no effect would
  // let revoked certificates in.
  fill(options.crl_directory, "HAWSER_TLS_CRL_DIR");
  fill(options.authorization_policy_path, "HAWSER_AUTHORIZATION_POLICY");
  if (!options.token_fd.has_value()) {
    fill(options.token_path, "HAWSER_TOKEN_FILE");
  }
  return options;
}

std::shared_ptr<const Credentials> Credentials::Insecure() {
  return std::shared_ptr<const Credentials>(new Credentials);
}

absl::StatusOr<std::shared_ptr<const Credentials>> Credentials::Create(
    const CredentialsOptions& options, std::optional<Identity> self) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<Credentials> made(new Credentials);
  ASSIGN_OR_RETURN(const std::string token, ReadToken(options));
  if (!token.empty()) made->authorization_ = "Bearer " + token;
  if (!options.authorization_policy_path.empty()) {
    ASSIGN_OR_RETURN(made->policy_, AuthorizationPolicy::Watch(
                                        options.authorization_policy_path,
                                        options.reload_interval));
  }
  if (options.certificate_path.empty()) return made;
  ASSIGN_OR_RETURN(made->self_, net::CheckFiles(options));
  if (self.has_value()) {
    if (!CheckClaim(made->self_, *self).ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.certificate_path, " is the certificate of ",
                       ToUri(made->self_), ", not of ", ToUri(*self)));
    }
    const absl::Status roles =
        CheckClaimedRoles(ToUri(*self), made->self_.roles, self->roles);
    if (!roles.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.certificate_path, ": ", roles.message()));
    }
  }
  if (!options.crl_directory.empty()) {
    RETURN_IF_ERROR(CheckCrlDirectory(options.crl_directory));
  }
  made->options_ = options;
  made->provider_ =
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          options.key_path, options.certificate_path, options.ca_path,
          static_cast<unsigned>(absl::ToInt64Seconds(options.reload_interval)));
  return made;
}

absl::Status Credentials::CheckMayListen(std::string_view address,
                                         bool allow_insecure_network) const {
  if (has_tls()) return absl::OkStatus();
  if (HasDebugServices()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "refusing to listen on ",
        absl::string_view(address.data(), address.size()),
        ": it is not loopback, and this program serves reflection or channelz, "
        "which without TLS are open to everyone who can connect; set a "
        "certificate, its key and the job's CA, or link neither "
        "//rpc/grpc:reflection nor //rpc/grpc:channelz"));
  }
  if (allow_insecure_network) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "refusing to listen on ",
      absl::string_view(address.data(), address.size()),
      ": it is not loopback, and without TLS everyone who can connect can use "
      "it; set a certificate, its key and the job's CA, or set "
      "allow_insecure_network if every machine that can connect is trusted"));
}

absl::Status Credentials::CheckFiles() const {
  return has_tls() ? net::CheckFiles(options_).status() : absl::OkStatus();
}

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer() const {
  if (!has_tls()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.set_certificate_verifier(MakeJobVerifier(self_.job));
  if (!options_.crl_directory.empty()) {
    options.set_crl_directory(options_.crl_directory);
  }
  std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::experimental::TlsServerCredentials(options);
  if (policy_ != nullptr || HasDebugServices()) {
    credentials->SetAuthMetadataProcessor(
        MakeAuthorizationInterceptor(self_.job, policy_));
  }
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials::ForChannel(
    std::shared_ptr<grpc::experimental::CertificateVerifier> verifier) const {
  if (!has_tls()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  // Certificates do not name addresses.
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::move(verifier));
  if (!options_.crl_directory.empty()) {
    options.set_crl_directory(options_.crl_directory);
  }
  return grpc::experimental::TlsCredentials(options);
}

void Credentials::Sign(grpc::ClientContext& context) const {
  if (has_token()) context.AddMetadata(kAuthorization, authorization_);
}

absl::StatusOr<Identity> Credentials::CallerOf(
    const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) {
    return absl::UnauthenticatedError("the caller has no certificate");
  }
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : auth->FindPropertyValues(kPeerUri)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  absl::StatusOr<Identity> found = FindIdentity(uris);
  if (found.ok()) return found;
  return absl::UnauthenticatedError(found.status().message());
}

absl::Status Credentials::CheckCall(
    const grpc::ServerContextBase& context) const {
  if (has_token()) {
    const auto& metadata = context.client_metadata();
    const auto [first, last] = metadata.equal_range(kAuthorization);
    if (first == last) {
      return absl::UnauthenticatedError(
          "the call has no token (metadata \"authorization: Bearer "
          "TOKEN\"); give the caller the job's token file");
    }
    // Compares in constant time.
    if (std::next(first) != last ||
        first->second.size() != authorization_.size() ||
        CRYPTO_memcmp(first->second.data(), authorization_.data(),
                      authorization_.size()) != 0) {
      return absl::UnauthenticatedError(
          "the call's token is not the job's token; give the caller the job's "
          "token "
          "file");
    }
  }
  if (!has_tls()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Identity caller, CallerOf(context));
  if (caller.job == self_.job) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the caller's certificate is for ", ToUri(caller),
                   ", not of job ", self_.job));
}

absl::StatusOr<std::optional<Identity>> Credentials::Caller(
    const grpc::ServerContextBase& context) const {
  if (!has_tls()) return std::nullopt;
  return CallerOf(context);
}

std::string Credentials::ClientOf(
    const grpc::ServerContextBase& context) const {
  const absl::StatusOr<std::optional<Identity>> caller = Caller(context);
  return caller.ok() && caller->has_value() ? ToUri(**caller) : context.peer();
}

absl::Status Credentials::CheckMayChange(
    const grpc::ServerContextBase& context) const {
  if (!has_tls()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Identity caller, CallerOf(context));
  if (!HasRole(caller.roles, kObserverRole)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      ToUri(caller), " has the role observer, which is read-only"));
}

}  // namespace hawser::net
