#include "net/testing/test_credentials.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "fs/private_file.h"
#include "gtest/gtest.h"
#include "net/auth/revocation_list.h"

namespace hawser::net {

TestAuthority::TestAuthority(const std::string& job) : job_(job) {
  std::string name = testing::TempDir() + "/authority_XXXXXX";
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  directory_ = name;
  absl::StatusOr<KeyAndCertificate> made = MakeAuthority(job, absl::Hours(24));
  EXPECT_THAT(made, async::IsOk());
  authority_ = *made;
  Write("ca.crt", authority_.certificate);
  std::filesystem::create_directory(crl_directory());
}

TestAuthority::~TestAuthority() { std::filesystem::remove_all(directory_); }

CredentialsOptions TestAuthority::Issue(const std::string& worker,
                                        absl::Duration lifetime,
                                        const std::vector<std::string>& roles) {
  absl::StatusOr<KeyAndCertificate> pair = IssueCertificate(
      authority_, {.job = job_, .worker = worker, .roles = roles}, lifetime);
  EXPECT_THAT(pair, async::IsOk());
  CredentialsOptions options;
  options.certificate_path = Write(worker + ".crt", pair->certificate);
  options.key_path = Write(worker + ".key", pair->key);
  options.ca_path = directory_ + "/ca.crt";
  options.reload_interval = absl::Seconds(1);
  return options;
}

void TestAuthority::Revoke(const std::string& worker) {
  const auto certificate =
      fs::ReadPublicFile(absl::StrCat(directory_, "/", worker, ".crt"));
  EXPECT_THAT(certificate, async::IsOk());
  const auto list =
      MakeRevocationList(authority_, {*certificate}, revocation_list_);
  EXPECT_THAT(list, async::IsOk());
  const auto prefix = RevocationListPrefix(authority_.certificate);
  EXPECT_THAT(prefix, async::IsOk());
  revocation_list_ = *list;
  Write(absl::StrCat("crl/", *prefix, num_revocation_lists_++), *list);
}

std::shared_ptr<const Credentials> TestAuthority::Make(
    const std::string& worker, const std::vector<std::string>& roles) {
  auto made = Credentials::Create(Issue(worker, absl::Hours(24), roles),
                                  Identity{.job = job_, .worker = worker});
  EXPECT_THAT(made, async::IsOk());
  return *made;
}

std::string TestAuthority::Write(const std::string& name,
                                 const std::string& content, int mode) {
  std::string path = directory_ + "/" + name;
  std::ofstream(path) << content;
  EXPECT_EQ(chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
  return path;
}

}  // namespace hawser::net
