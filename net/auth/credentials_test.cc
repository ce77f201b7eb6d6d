#include "net/auth/credentials.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/certificate.h"
#include "net/auth/identity.h"
#include "net/testing/test_credentials.h"

namespace hawser::net {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

const std::string kToken(64, 'a');

TEST(IdentityTest, UriNamesJobAndWorker) {
  const Identity identity{.job = "j:1", .worker = "ps.0"};
  EXPECT_EQ(ToUri(identity), "hawser://j:1/ps.0");
  EXPECT_THAT(ParseUri("hawser://j:1/ps.0"), IsOkAndHolds(identity));
}

TEST(IdentityTest, OtherUrisAreRefused) {
  for (const std::string& uri :
       {std::string(), std::string("hawser://"), std::string("hawser://j"),
        std::string("hawser://j/"), std::string("hawser:///w"),
        std::string("hawser://j/w/x"), std::string("http://j/w"),
        std::string("hawser://j/w\0x", 13),
        absl::StrCat("hawser://j/", std::string(128, 'w'))}) {
    EXPECT_THAT(ParseUri(uri), StatusIs(absl::StatusCode::kInvalidArgument))
        << uri;
  }
}

TEST(IdentityTest, ClaimMustMatchTheCertificate) {
  const Identity proven{.job = "j", .worker = "w1"};
  EXPECT_THAT(CheckClaim(proven, {.job = "j", .worker = "w1"}), IsOk());
  EXPECT_THAT(CheckClaim(proven, {.job = "j", .worker = "w2"}),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       testing::AllOf(HasSubstr("hawser://j/w1"),
                                      HasSubstr("hawser://j/w2"))));
  EXPECT_THAT(CheckClaim(proven, {.job = "k", .worker = "w1"}),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(CheckClaim(proven, {.job = "j", .worker = "w\n"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CredentialsTest, CertificateOfTheWorkerIsAccepted) {
  TestAuthority authority("digits");
  const auto made = Credentials::Create(
      authority.Issue("ps0"), Identity{.job = "digits", .worker = "ps0"});
  ASSERT_THAT(made, IsOk());
  EXPECT_TRUE((*made)->has_tls());
  EXPECT_FALSE((*made)->has_token());
}

TEST(CredentialsTest, CertificateOfAnotherWorkerIsRefusedByName) {
  TestAuthority authority("digits");
  const CredentialsOptions options = authority.Issue("ps1");
  EXPECT_THAT(
      Credentials::Create(options, Identity{.job = "digits", .worker = "ps0"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("hawser://digits/ps1"),
                     HasSubstr("hawser://digits/ps0"))));
  EXPECT_THAT(Credentials::Create(options, std::nullopt), IsOk());
}

TEST(CredentialsTest, CertificateMustHaveTheRoles) {
  TestAuthority authority("digits");
  const CredentialsOptions options =
      authority.Issue("ps0", absl::Hours(1), {"ps", "evaluator"});
  const auto create = [&](const std::vector<std::string>& roles) {
    return Credentials::Create(
        options, Identity{.job = "digits", .worker = "ps0", .roles = roles});
  };
  for (const auto& made : {create({}), create({"evaluator"})}) {
    ASSERT_THAT(made, IsOk());
    EXPECT_THAT((*made)->self().roles, testing::ElementsAre("ps", "evaluator"));
  }
  EXPECT_THAT(create({"ps", "admin"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(options.certificate_path),
                             HasSubstr("'admin'"), HasSubstr("--roles"))));
}

TEST(CredentialsTest, CertificateOfAnotherAuthorityIsRefused) {
  TestAuthority authority;
  TestAuthority other;
  CredentialsOptions options = authority.Issue("ps0");
  options.ca_path = other.directory() + "/ca.crt";
  EXPECT_THAT(Credentials::Create(options, std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(options.certificate_path)));
}

TEST(CredentialsTest, KeyOfAnotherCertificateIsRefused) {
  TestAuthority authority;
  CredentialsOptions options = authority.Issue("ps0");
  options.key_path = authority.Issue("ps1").key_path;
  EXPECT_THAT(Credentials::Create(options, std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not belong")));
}

TEST(CredentialsTest, AWorkerCannotIssueCertificates) {
  TestAuthority authority;
  const auto worker =
      IssueCertificate(authority.authority(),
                       {.job = "default", .worker = "ps0"}, absl::Hours(1));
  ASSERT_THAT(worker, IsOk());
  const auto forged = IssueCertificate(
      *worker, {.job = "default", .worker = "ps1"}, absl::Hours(1));
  ASSERT_THAT(forged, IsOk());
  CredentialsOptions options;
  options.certificate_path =
      authority.Write("forged.crt", forged->certificate + worker->certificate);
  options.key_path = authority.Write("forged.key", forged->key);
  options.ca_path = authority.directory() + "/ca.crt";
  EXPECT_THAT(Credentials::Create(options, std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CredentialsTest, KeyThatOthersCanReadIsRefused) {
  TestAuthority authority;
  const CredentialsOptions options = authority.Issue("ps0");
  ASSERT_EQ(chmod(options.key_path.c_str(), 0640), 0);
  EXPECT_THAT(
      Credentials::Create(options, std::nullopt),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod 600")));
}

TEST(CredentialsTest, HalfOfTheTlsFilesIsAnError) {
  TestAuthority authority;
  CredentialsOptions options = authority.Issue("ps0");
  options.ca_path.clear();
  EXPECT_THAT(
      Credentials::Create(options, std::nullopt),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("all three")));
  options.certificate_path = "/none";
  options.ca_path = authority.directory() + "/ca.crt";
  EXPECT_THAT(Credentials::Create(options, std::nullopt),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

// Sets a variable of the environment during a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    EXPECT_EQ(setenv(name, value.c_str(), 1), 0);
  }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* const name_;
};

TEST(CredentialsTest, RevocationListsOfTheEnvironmentApplyToAllCertificates) {
  TestAuthority authority;
  const ScopedVariable variable("HAWSER_TLS_CRL_DIR",
                                authority.crl_directory());
  EXPECT_EQ(WithEnvironment(authority.Issue("w")).crl_directory,
            authority.crl_directory());
  CredentialsOptions own = authority.Issue("w");
  own.crl_directory = "own";
  EXPECT_EQ(WithEnvironment(own).crl_directory, "own");
  // Without certificates it has no effect.
  EXPECT_THAT(Credentials::Create(WithEnvironment({}), std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("HAWSER_TLS_CRL_DIR"),
                             HasSubstr(authority.crl_directory()))));
}

TEST(CredentialsTest, CertificatesOfTheEnvironmentAreTakenTogether) {
  TestAuthority authority;
  const CredentialsOptions issued = authority.Issue("w");
  const ScopedVariable certificate("HAWSER_TLS_CERT", issued.certificate_path);
  const ScopedVariable key("HAWSER_TLS_KEY", issued.key_path);
  const ScopedVariable ca("HAWSER_TLS_CA", issued.ca_path);
  EXPECT_THAT(Credentials::Create(WithEnvironment({}), std::nullopt), IsOk());
  CredentialsOptions half;
  half.ca_path = issued.ca_path;
  EXPECT_THAT(Credentials::Create(WithEnvironment(half), std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("set all three or none")));
}

TEST(CredentialsTest, RevocationListsMustBeReadable) {
  TestAuthority authority;
  CredentialsOptions options = authority.Issue("w");
  options.crl_directory = authority.directory() + "/missing";
  EXPECT_THAT(
      Credentials::Create(options, std::nullopt),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(options.crl_directory)));
}

TEST(CredentialsTest, TokenComesFromAPrivateFile) {
  TestAuthority authority;
  CredentialsOptions options;
  options.token_path = authority.Write("token", kToken + "\n");
  const auto made = Credentials::Create(options, std::nullopt);
  ASSERT_THAT(made, IsOk());
  EXPECT_TRUE((*made)->has_token());
  EXPECT_FALSE((*made)->has_tls());

  options.token_path = authority.Write("open", kToken, 0644);
  EXPECT_THAT(Credentials::Create(options, std::nullopt),
              StatusIs(absl::StatusCode::kPermissionDenied));
  // The error does not contain the token.
  options.token_path = authority.Write("short", "secret");
  EXPECT_THAT(
      Credentials::Create(options, std::nullopt),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("64 hexadecimal"), Not(HasSubstr("secret")))));
}

TEST(CredentialsTest, TokenComesFromADescriptorWhichIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(write(ends[1], kToken.data(), kToken.size()), 64);
  close(ends[1]);
  CredentialsOptions options;
  options.token_fd = ends[0];
  const auto made = Credentials::Create(options, std::nullopt);
  ASSERT_THAT(made, IsOk());
  EXPECT_TRUE((*made)->has_token());
  EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
}

TEST(CredentialsTest, WithoutTlsServersListenOnlyOnLoopback) {
  const absl::Status status =
      Credentials::Insecure()->CheckMayListen("0.0.0.0:1", false);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("0.0.0.0:1"),
                                     HasSubstr("allow_insecure_network"),
                                     Not(HasSubstr("\n")))));
  TestAuthority authority;
  EXPECT_THAT(authority.Make("ps0")->CheckMayListen("0.0.0.0:1", false),
              IsOk());
}

}  // namespace
}  // namespace hawser::net
