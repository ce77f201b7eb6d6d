#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "cli/run.h"
#include "fs/private_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "net/testing/test_credentials.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"

namespace hawser::cli {
namespace {

using async::IsOk;
using async::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome Hawser(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = Run(arguments, out, err);
  return {exit_code, out.str(), err.str()};
}

int ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return static_cast<int>(info.st_mode & 07777);
}

class CertsTest : public testing::Test {
 protected:
  CertsTest() {
    std::string name = testing::TempDir() + "/certs_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    job_ = root_ + "/job";
  }
  ~CertsTest() override { std::filesystem::remove_all(root_); }

  // The number of entries of the test's directory, with temporary ones.
  int NumEntries() const {
    int count = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root_)) {
      (void)entry;
      ++count;
    }
    return count;
  }

  net::CredentialsOptions OptionsOf(const std::string& worker) const {
    net::CredentialsOptions options;
    options.certificate_path = absl::StrCat(job_, "/", worker, "/worker.crt");
    options.key_path = absl::StrCat(job_, "/", worker, "/worker.key");
    options.ca_path = absl::StrCat(job_, "/", worker, "/ca.crt");
    options.token_path = absl::StrCat(job_, "/", worker, "/token");
    return options;
  }

  std::string root_;
  std::string job_;
};

TEST_F(CertsTest, IssuedFilesAreCredentialsOfTheWorker) {
  ASSERT_EQ(Hawser({"certs", "init", job_, "--job", "digits"}).exit_code, 0);
  const Outcome issued = Hawser({"certs", "issue", job_, "ps0", "ps1"});
  EXPECT_EQ(issued.exit_code, 0) << issued.err;
  EXPECT_THAT(issued.out, HasSubstr(job_ + "/ps1"));
  for (const char* worker : {"ps0", "ps1"}) {
    const auto made = net::Credentials::Create(
        OptionsOf(worker), net::Identity{.job = "digits", .worker = worker});
    ASSERT_THAT(made, IsOk());
    EXPECT_TRUE((*made)->has_tls());
    EXPECT_TRUE((*made)->has_token());
  }
  EXPECT_EQ(*fs::ReadPrivateFile(job_ + "/ps0/token"),
            *fs::ReadPrivateFile(job_ + "/token"));
}

TEST_F(CertsTest, IssuedCertificatesHaveTheRoles) {
  Hawser({"certs", "init", job_, "--job", "digits"});
  ASSERT_EQ(
      Hawser({"certs", "issue", job_, "ps0", "--roles=ps,evaluator"}).exit_code,
      0);
  const auto made = net::Credentials::Create(OptionsOf("ps0"), std::nullopt);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ((*made)->self(), (net::Identity{.job = "digits",
                                            .worker = "ps0",
                                            .roles = {"ps", "evaluator"}}));
  const Outcome refused =
      Hawser({"certs", "issue", job_, "ps1", "--roles", "a role"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a role"));
}

TEST_F(CertsTest, OnlyTheOwnerMayReadSecrets) {
  const mode_t old = umask(0);
  Hawser({"certs", "init", job_});
  Hawser({"certs", "issue", job_, "ps0"});
  umask(old);
  EXPECT_EQ(ModeOf(job_), 0700);
  EXPECT_EQ(ModeOf(job_ + "/ca.key"), 0600);
  EXPECT_EQ(ModeOf(job_ + "/token"), 0600);
  EXPECT_EQ(ModeOf(job_ + "/ps0"), 0700);
  EXPECT_EQ(ModeOf(job_ + "/ps0/worker.key"), 0600);
  EXPECT_EQ(ModeOf(job_ + "/ps0/token"), 0600);
}

TEST_F(CertsTest, ExistingAuthorityIsNotOverwritten) {
  ASSERT_EQ(Hawser({"certs", "init", job_}).exit_code, 0);
  const std::string key = *fs::ReadPrivateFile(job_ + "/ca.key");
  const Outcome again = Hawser({"certs", "init", job_ + "/"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("/job already exists"));
  EXPECT_EQ(*fs::ReadPrivateFile(job_ + "/ca.key"), key);
  EXPECT_EQ(NumEntries(), 5) << "a temporary file is left";
}

TEST_F(CertsTest, FilesOfAWorkerAreReplacedTogether) {
  Hawser({"certs", "init", job_});
  Hawser({"certs", "issue", job_, "ps0"});
  const std::string key = *fs::ReadPrivateFile(job_ + "/ps0/worker.key");
  EXPECT_EQ(Hawser({"certs", "issue", job_, "ps0"}).exit_code, 0);
  EXPECT_NE(*fs::ReadPrivateFile(job_ + "/ps0/worker.key"), key);
  EXPECT_THAT(net::Credentials::Create(OptionsOf("ps0"), std::nullopt), IsOk());
  EXPECT_EQ(NumEntries(), 10) << "the old files still exist";
}

TEST_F(CertsTest, NamesOfOtherDirectoriesAreRejected) {
  Hawser({"certs", "init", job_});
  for (const char* worker :
       {"..", ".", ".x", "_x", "a/b", "", "ca.key", "crl"}) {
    const Outcome outcome = Hawser({"certs", "issue", job_, worker});
    EXPECT_NE(outcome.exit_code, 0) << worker;
    EXPECT_THAT(outcome.out, IsEmpty()) << worker;
  }
  EXPECT_EQ(NumEntries(), 5);
  EXPECT_THAT(fs::ReadPrivateFile(job_ + "/ca.key"), IsOk());
}

TEST_F(CertsTest, PlantedLinksAreNeitherFollowedNorReplaced) {
  ASSERT_EQ(Hawser({"certs", "init", job_}).exit_code, 0);
  // A link to another worker's files.
  ASSERT_EQ(Hawser({"certs", "issue", job_, "ps0"}).exit_code, 0);
  const auto own = fs::ReadPublicFile(job_ + "/ps0/worker.crt");
  ASSERT_THAT(own, IsOk());
  std::filesystem::create_directory_symlink("ps0", job_ + "/ps1");
  const Outcome outcome = Hawser({"certs", "issue", job_, "ps1"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("was not made by"));
  EXPECT_TRUE(std::filesystem::is_symlink(job_ + "/ps1"));
  EXPECT_EQ(*fs::ReadPublicFile(job_ + "/ps0/worker.crt"), *own);
  // Nor is an authority created through a link.
  std::filesystem::create_directory(root_ + "/empty");
  std::filesystem::create_directory_symlink("empty", root_ + "/other");
  EXPECT_NE(Hawser({"certs", "init", root_ + "/other"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/empty"));
}

TEST_F(CertsTest, ErrorsNameAbsentAndForeignAuthorities) {
  const Outcome absent = Hawser({"certs", "issue", job_, "ps0"});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_THAT(absent.err, HasSubstr(job_ + "/ca.crt"));

  Hawser({"certs", "init", job_});
  Hawser({"certs", "issue", job_, "ps0"});
  // A worker's certificate in place of an authority's.
  std::filesystem::copy_file(job_ + "/ps0/worker.crt", job_ + "/ca.crt",
                             std::filesystem::copy_options::overwrite_existing);
  const Outcome foreign = Hawser({"certs", "issue", job_, "ps1"});
  EXPECT_EQ(foreign.exit_code, 1);
  EXPECT_THAT(foreign.err, HasSubstr("hawser certs init"));
}

TEST_F(CertsTest, FlagsTakeOneValueAnywhere) {
  ASSERT_EQ(Hawser({"certs", "init", "--job", "digits", job_}).exit_code, 0);
  const Outcome issued =
      Hawser({"certs", "issue", "--roles", "ps,evaluator", job_, "ps0", "ps1"});
  EXPECT_EQ(issued.exit_code, 0) << issued.err;
  const auto made = net::Credentials::Create(OptionsOf("ps0"), std::nullopt);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ((*made)->self().roles,
            (std::vector<std::string>{"ps", "evaluator"}));
  const Outcome revoked = Hawser({"certs", "revoke", "--certificate",
                                  job_ + "/ps0/worker.crt", job_, "ps1"});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
}

TEST_F(CertsTest, ShowDescribesFilesAndDirectories) {
  Hawser({"certs", "init", job_, "--job", "digits"});
  Hawser({"certs", "issue", job_, "ps0", "--roles=ps"});
  const Outcome shown =
      Hawser({"certs", "show", job_, job_ + "/ps0", job_ + "/ps0/ca.crt"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out,
              AllOf(StartsWith(job_ + "/ca.crt\nsubject    CN=Hawser job "
                                      "digits\nauthority  job digits\n"),
                    HasSubstr(job_ + "/ps0/worker.crt\nsubject    CN=ps0\n"
                                     "identity   hawser://digits/ps0\n"
                                     "roles      ps\n"),
                    HasSubstr("state      valid for another 29 days\n"),
                    HasSubstr(job_ + "/ps0/ca.crt\n")));
}

TEST_F(CertsTest, ShowReportsExpiryAndOtherFiles) {
  Hawser({"certs", "init", job_});
  Hawser({"certs", "issue", job_, "ps0", "--days=1"});
  const Outcome soon = Hawser({"certs", "show", job_ + "/ps0"});
  EXPECT_EQ(soon.exit_code, 0) << soon.err;
  EXPECT_THAT(soon.out, HasSubstr("EXPIRES SOON, in 23 hours"));

  net::TestAuthority authority;
  const std::string file =
      authority.Issue("old", absl::Milliseconds(1)).certificate_path;
  const Outcome expired = Hawser({"certs", "show", file, job_});
  EXPECT_EQ(expired.exit_code, 2);
  EXPECT_THAT(expired.out, AllOf(HasSubstr("EXPIRED 0 minutes ago"),
                                 HasSubstr(job_ + "/ca.crt")));
  EXPECT_THAT(expired.err, HasSubstr(file + ": the certificate has expired"));

  const Outcome token = Hawser({"certs", "show", job_ + "/token"});
  EXPECT_EQ(token.exit_code, 1);
  EXPECT_THAT(token.err, HasSubstr(job_ + "/token"));
  EXPECT_EQ(Hawser({"certs", "show", root_ + "/none"}).exit_code, 1);
}

class RevocationTest : public CertsTest {
 protected:
  RevocationTest() {
    EXPECT_EQ(Hawser({"certs", "init", job_}).exit_code, 0);
    EXPECT_EQ(Hawser({"certs", "issue", job_, "keeper", "w0", "w1"}).exit_code,
              0);
    net::CredentialsOptions options = OptionsOf("keeper");
    options.crl_directory = job_ + "/crl";
    auto credentials = net::Credentials::Create(options, std::nullopt);
    EXPECT_THAT(credentials, IsOk());
    auto server = store::StoreServer::Start({.credentials = *credentials});
    EXPECT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  // Connects with the current files of `worker`.
  absl::Status Connect(const std::string& worker) {
    auto credentials =
        net::Credentials::Create(OptionsOf(worker), std::nullopt);
    EXPECT_THAT(credentials, IsOk());
    return store::GrpcStore::Connect(
               {.address = server_->address(), .credentials = *credentials})
        .status();
  }

  std::unique_ptr<store::StoreServer> server_;
};

TEST_F(RevocationTest, RunningServersRejectRevokedWorkers) {
  EXPECT_THAT(Connect("w0"), IsOk());
  EXPECT_THAT(Connect("w1"), IsOk());
  for (const char* worker : {"w0", "w1"}) {
    const Outcome revoked = Hawser({"certs", "revoke", job_, worker});
    EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
    EXPECT_THAT(revoked.out, HasSubstr(job_ + "/crl"));
    EXPECT_THAT(Connect(worker), StatusIs(absl::StatusCode::kUnauthenticated));
  }
  // Earlier revocations stay in force.
  EXPECT_THAT(Connect("w0"), StatusIs(absl::StatusCode::kUnauthenticated));
  ASSERT_EQ(Hawser({"certs", "issue", job_, "w0"}).exit_code, 0);
  EXPECT_THAT(Connect("w0"), IsOk());
}

TEST_F(RevocationTest, FilesOfOlderCertificatesRevokeThem) {
  const std::string old_files = root_ + "/old";
  std::filesystem::copy(job_ + "/w0", old_files);
  ASSERT_EQ(Hawser({"certs", "issue", job_, "w0"}).exit_code, 0);
  const Outcome revoked = Hawser(
      {"certs", "revoke", job_, "--certificate", old_files + "/worker.crt"});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  EXPECT_THAT(Connect("w0"), IsOk());
  std::filesystem::remove_all(job_ + "/w0");
  std::filesystem::rename(old_files, job_ + "/w0");
  EXPECT_THAT(Connect("w0"), StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(RevocationTest, CertificatesOfOthersAreNotRevoked) {
  ASSERT_EQ(Hawser({"certs", "init", root_ + "/other"}).exit_code, 0);
  ASSERT_EQ(Hawser({"certs", "issue", root_ + "/other", "w0"}).exit_code, 0);
  std::filesystem::create_directory_symlink("w1", job_ + "/w2");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{},
        {"w9"},
        {".."},
        {"../other/w0"},
        {"w2"},
        {"--certificate", root_ + "/other/w0/worker.crt"},
        {"--certificate", job_ + "/token"}}) {
    std::vector<std::string> all = {"certs", "revoke", job_};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = Hawser(all);
    EXPECT_NE(outcome.exit_code, 0) << testing::PrintToString(arguments);
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_TRUE(std::filesystem::is_empty(job_ + "/crl"));
  EXPECT_THAT(Connect("w1"), IsOk());
}

}  // namespace
}  // namespace hawser::cli
