#include "net/auth/job_verifier.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "net/auth/identity.h"

namespace hawser::net {
namespace {

class JobVerifier final
    : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit JobVerifier(std::string job) : job_(std::move(job)) {}

 private:
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    std::vector<std::string> uris;
    for (const grpc::string_ref& uri : request->uri_names()) {
      uris.emplace_back(uri.data(), uri.size());
    }
    const absl::Status status = Check(uris);
    if (!status.ok()) {
      *sync_status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  std::string(status.message()));
    }
    return true;
  }

  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {
  }

  absl::Status Check(const std::vector<std::string>& uris) const {
    const absl::StatusOr<Identity> client = FindIdentity(uris);
    if (!client.ok()) return client.status();
    if (client->job == job_) return absl::OkStatus();
    return absl::UnauthenticatedError(
        absl::StrCat(ToUri(*client), " is not of job ", job_));
  }

  const std::string job_;
};

}  // namespace

std::shared_ptr<grpc::experimental::CertificateVerifier> MakeJobVerifier(
    std::string job) {
  return grpc::experimental::ExternalCertificateVerifier::Create<JobVerifier>(
      std::move(job));
}

}  // namespace hawser::net
