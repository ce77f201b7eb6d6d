#include "net/auth/authorization_interceptor.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "net/auth/authorization_policy.h"

namespace hawser::net {
namespace {

using ::grpc::StatusCode;
using ::hawser::async::IsOk;
using ::testing::HasSubstr;

// Auth context of a connection whose certificate has these URIs and host names.
class Context final : public grpc::AuthContext {
 public:
  explicit Context(std::vector<std::string> uris,
                   std::vector<std::string> hosts = {})
      : uris_(std::move(uris)), hosts_(std::move(hosts)) {}

  std::vector<grpc::string_ref> FindPropertyValues(
      const std::string& name) const override {
    if (name == "peer_uri") return {uris_.begin(), uris_.end()};
    if (name == "peer_dns") return {hosts_.begin(), hosts_.end()};
    return {};
  }

  // Methods that the gate does not use.
  bool IsPeerAuthenticated() const override { return true; }
  std::vector<grpc::string_ref> GetPeerIdentity() const override { return {}; }
  std::string GetPeerIdentityPropertyName() const override { return ""; }
  grpc::AuthPropertyIterator begin() const override { std::abort(); }
  grpc::AuthPropertyIterator end() const override { std::abort(); }
  void AddProperty(const std::string&, const grpc::string_ref&) override {}
  bool SetPeerIdentityPropertyName(const std::string&) override {
    return false;
  }

 private:
  const std::vector<std::string> uris_;
  const std::vector<std::string> hosts_;
};

grpc::Status Judge(grpc::AuthMetadataProcessor& gate,
                   const std::vector<std::string>& uris,
                   const std::string& path,
                   const std::vector<std::string>& hosts = {}) {
  Context context(uris, hosts);
  grpc::AuthMetadataProcessor::OutputMetadata consumed;
  grpc::AuthMetadataProcessor::OutputMetadata response;
  return gate.Process({{":path", path}}, &context, &consumed, &response);
}

// A policy that denies `path` to callers that match `source`.
std::shared_ptr<AuthorizationPolicy> NobodyCalls(
    const std::string& path, const std::string& source = "{}") {
  const std::string file = testing::TempDir() + "/policy.json";
  std::ofstream(file) << R"({"name": "a", "deny_rules": [{"name": "none",
      "source": )" << source
                      << R"(, "request": {"paths": [")" << path
                      << R"("]}}], "allow_rules": [{"name": "others"}]})";
  auto policy = AuthorizationPolicy::Watch(file, absl::Hours(1));
  EXPECT_THAT(policy, IsOk());
  return *policy;
}

TEST(AuthorizationInterceptorTest, DebugServicesRequireTheRoleAdmin) {
  const auto gate = MakeAuthorizationInterceptor("job", nullptr);
  for (const char* path :
       {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/grpc.channelz.v1.Channelz/GetServers"}) {
    EXPECT_TRUE(
        Judge(*gate, {"hawser://job/eye", "hawser-role:admin"}, path).ok());
    for (const std::vector<std::string>& uris :
         {std::vector<std::string>{},
          {"hawser-role:admin"},
          {"hawser://job/eye"},
          {"hawser://job/eye", "hawser-role:observer"},
          {"hawser://other/eye", "hawser-role:admin"}}) {
      EXPECT_EQ(Judge(*gate, uris, path).error_code(),
                StatusCode::PERMISSION_DENIED);
    }
  }
  EXPECT_TRUE(Judge(*gate, {}, "/hawser.v1.WorkerService/Call").ok());
}

// Also covers requests that are sent in fragments.
TEST(AuthorizationInterceptorTest, PolicyCoversRequestsInFragments) {
  const auto gate =
      MakeAuthorizationInterceptor("job", NobodyCalls("/a.A/Call"));
  const std::vector<std::string> uris = {"hawser://job/w"};
  for (const char* path : {"/a.A/Call", "/a.A/CallInFragments"}) {
    const grpc::Status status = Judge(*gate, uris, path);
    EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED) << path;
    EXPECT_THAT(status.error_message(), HasSubstr("'none'"));
  }
  for (const char* path : {"/a.A/Calls", "/a.A/OtherInFragments"}) {
    EXPECT_TRUE(Judge(*gate, uris, path).ok()) << path;
  }
}

TEST(AuthorizationInterceptorTest, PrincipalsAreUrisAndHostNames) {
  const auto gate = MakeAuthorizationInterceptor(
      "job", NobodyCalls("/a.A/Call",
                         R"({"principals": ["hawser://job/w", "h1.test"]})"));
  EXPECT_EQ(Judge(*gate, {"hawser://job/w"}, "/a.A/Call").error_code(),
            StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(
      Judge(*gate, {"hawser://job/v"}, "/a.A/Call", {"h1.test"}).error_code(),
      StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Judge(*gate, {"hawser://job/v"}, "/a.A/Call", {"h2.test"}).ok());
}

TEST(AuthorizationInterceptorTest, CallsWithoutAMethodAreDenied) {
  const auto gate = MakeAuthorizationInterceptor("job", nullptr);
  Context context({"hawser://job/w"});
  grpc::AuthMetadataProcessor::OutputMetadata consumed;
  grpc::AuthMetadataProcessor::OutputMetadata response;
  EXPECT_EQ(gate->Process({}, &context, &consumed, &response).error_code(),
            StatusCode::PERMISSION_DENIED);
}

// Also denies debug services, which admins may otherwise call.
TEST(AuthorizationInterceptorTest, PolicyAppliesToDebugServices) {
  const auto gate =
      MakeAuthorizationInterceptor("job", NobodyCalls("/grpc.channelz.*"));
  EXPECT_EQ(Judge(*gate, {"hawser://job/eye", "hawser-role:admin"},
                  "/grpc.channelz.v1.Channelz/GetServers")
                .error_code(),
            StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace hawser::net
