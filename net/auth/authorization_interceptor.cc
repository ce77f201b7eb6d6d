#include "net/auth/authorization_interceptor.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/support/status.h"
#include "net/auth/identity.h"
#include "net/auth/role.h"
#include "net/server/debug_services.h"
#include "net/wire_text.h"

namespace hawser::net {
namespace {

void AppendNames(const grpc::AuthContext& context, const char* property,
                 std::vector<std::string>& names) {
  for (const grpc::string_ref& name : context.FindPropertyValues(property)) {
    names.emplace_back(name.data(), name.size());
  }
}

grpc::Status Denied(const absl::Status& status) {
  return {grpc::StatusCode::PERMISSION_DENIED, ToErrorText(status)};
}

class AuthorizationInterceptor final : public grpc::AuthMetadataProcessor {
 public:
  AuthorizationInterceptor(std::string job,
                           std::shared_ptr<AuthorizationPolicy> policy)
      : job_(std::move(job)), policy_(std::move(policy)) {}

  // If true, gRPC would use a separate thread for each call.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto found = metadata.find(":path");
    if (found == metadata.end()) {
      return Denied(
          absl::PermissionDeniedError("the call has no method (:path header)"));
    }
    const std::string_view path(found->second.data(), found->second.size());
    const bool debug = IsDebugMethod(path);
    if (!debug && policy_ == nullptr) return grpc::Status::OK;
    std::vector<std::string> names;
    AppendNames(*context, "peer_uri", names);
    if (debug) {
      if (absl::Status status = CheckAdmin(names); !status.ok()) {
        return Denied(status);
      }
    }
    if (policy_ != nullptr) {
      AppendNames(*context, "peer_dns", names);
      if (absl::Status status = policy_->Check(names, path); !status.ok()) {
        return Denied(status);
      }
    }
    return grpc::Status::OK;
  }

 private:
  absl::Status CheckAdmin(const std::vector<std::string>& uris) const {
    const absl::StatusOr<Identity> caller = FindIdentity(uris);
    if (!caller.ok()) return caller.status();
    if (caller->job == job_ && HasRole(caller->roles, kAdminRole)) {
      return absl::OkStatus();
    }
    return absl::PermissionDeniedError(
        absl::StrCat(ToUri(*caller), " has ", ToText(caller->roles),
                     ", but debug services require a certificate of job ", job_,
                     " with the role admin"));
  }

  const std::string job_;
  const std::shared_ptr<AuthorizationPolicy> policy_;
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeAuthorizationInterceptor(
    std::string job, std::shared_ptr<AuthorizationPolicy> policy) {
  return std::make_shared<AuthorizationInterceptor>(std::move(job),
                                                    std::move(policy));
}

}  // namespace hawser::net
