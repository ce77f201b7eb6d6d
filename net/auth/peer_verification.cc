#include "net/auth/peer_verification.h"

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "net/auth/identity.h"
#include "net/auth/role.h"

namespace hawser::net {

struct PeerVerification::State {
  // True if this end accepted the server and no call has completed since.
  std::atomic<bool> accepted = false;
};

// Runs at the end of the handshake, after the check of the certificate's
// signature.
class PeerVerification::Verifier final
    : public grpc::experimental::ExternalCertificateVerifier {
 public:
  Verifier(Identity wanted, std::shared_ptr<State> state)
      : wanted_(std::move(wanted)), state_(std::move(state)) {}

 private:
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    const absl::Status status = Check(request->uri_names());
    state_->accepted = status.ok();
    if (!status.ok()) {
      *sync_status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  std::string(status.message()));
    }
    return true;
  }

  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {
  }

  absl::Status Check(const std::vector<grpc::string_ref>& uris) const {
    std::vector<std::string> texts;
    texts.reserve(uris.size());
    for (const grpc::string_ref& uri : uris) {
      texts.emplace_back(uri.data(), uri.size());
    }
    absl::StatusOr<Identity> found = FindIdentity(texts);
    if (!found.ok()) return found.status();
    if (found->job == wanted_.job &&
        (wanted_.worker.empty() || found->worker == wanted_.worker)) {
      return CheckClaimedRoles(ToUri(*found), found->roles, wanted_.roles);
    }
    return absl::UnauthenticatedError(
        absl::StrCat("it is for ", ToUri(*found)));
  }

  const Identity wanted_;
  const std::shared_ptr<State> state_;
};

PeerVerification::PeerVerification(
    std::shared_ptr<const Credentials> credentials, std::string worker,
    std::vector<std::string> roles)
    : credentials_(std::move(credentials)),
      worker_(std::move(worker)),
      roles_(std::move(roles)),
      state_(std::make_shared<State>()) {}

PeerVerification::~PeerVerification() = default;

std::shared_ptr<grpc::Channel> PeerVerification::CreateChannel(
    const std::string& address, grpc::ChannelArguments arguments) const {
  if (!credentials_->has_tls()) {
    return grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments);
  }
  const Identity wanted{
      .job = credentials_->self().job, .worker = worker_, .roles = roles_};
  // Maximum length of the TLS server name, by which the server selects its
  // certificate.
  constexpr size_t kMaxHostNameLength = 255;
  std::string host = HostNameOf(wanted);
  if (worker_.empty() || host.size() > kMaxHostNameLength) {
    host = HostNameOfJob(wanted.job);
  }
  arguments.SetSslTargetNameOverride(host);
  return grpc::CreateCustomChannel(
      address,
      credentials_->ForChannel(
          grpc::experimental::ExternalCertificateVerifier::Create<Verifier>(
              wanted, state_)),
      arguments);
}

std::string PeerVerification::Wanted() const {
  const Identity& self = credentials_->self();
  if (worker_.empty()) return absl::StrCat("a worker of job ", self.job);
  const std::string uri = ToUri({.job = self.job, .worker = worker_});
  return roles_.empty() ? uri : absl::StrCat(uri, " with ", ToText(roles_));
}

absl::Status PeerVerification::RefusedByServer(std::string_view reason) const {
  const absl::Status own = credentials_->CheckFiles();
  return absl::UnauthenticatedError(absl::StrCat(
      Wanted(),
      " closed the connection after the TLS handshake, probably because it "
      "rejects this end's certificate, for ",
      ToUri(credentials_->self()),
      own.ok() ? ": it is not signed by a CA that the server trusts, is "
                 "revoked, or is "
                 "for another job"
               : absl::StrCat(": ", own.message()),
      " (", absl::string_view(reason.data(), reason.size()), ")"));
}

void PeerVerification::NoteAnswer() const {
  // Avoids most stores, so that the cache line stays shared.
  if (state_->accepted.load(std::memory_order_relaxed)) {
    state_->accepted.store(false, std::memory_order_relaxed);
  }
}

// gRPC reports errors before a call is sent only in the message text.
absl::Status PeerVerification::Explain(absl::Status status) const {
  if (!credentials_->has_tls()) return status;
  if (!absl::IsUnavailable(status)) {
    if (!absl::IsDeadlineExceeded(status) && !absl::IsCancelled(status)) {
      NoteAnswer();
    }
    return status;
  }
  const absl::string_view reason = status.message();
  if (!absl::StrContains(reason, "failed to connect to all addresses")) {
    return status;
  }
  if (absl::StrContains(reason, "Custom verification check failed")) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the server's certificate is not for ", Wanted(), ": ", reason));
  }
  if (absl::StrContains(reason, "SSL_ERROR_SSL")) {
    return absl::UnauthenticatedError(
        absl::StrCat("the TLS handshake with ", Wanted(),
                     " failed; its certificate must be signed by this end's "
                     "CA, valid now and not revoked: ",
                     reason));
  }
  const bool closed = absl::StrContains(reason, "Socket closed") ||
                      absl::StrContains(reason, "Connection reset by peer") ||
                      absl::StrContains(reason, "Broken pipe");
  // With TLS 1.3 the server verifies this end after this end has completed the
  // handshake.
  return closed && state_->accepted
             ? RefusedByServer({reason.data(), reason.size()})
             : status;
}

}  // namespace hawser::net
