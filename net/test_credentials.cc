#include "net/test_credentials.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/time/time.h"
#include "async/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::net {

TestAuthority::TestAuthority(const std::string& job) : job_(job) {
  std::string name = testing::TempDir() + "/authority_XXXXXX";
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  directory_ = name;
  absl::StatusOr<KeyAndCertificate> made = MakeAuthority(job, absl::Hours(24));
  EXPECT_THAT(made, async::IsOk());
  authority_ = *made;
  Write("ca.crt", authority_.certificate);
}

TestAuthority::~TestAuthority() { std::filesystem::remove_all(directory_); }

CredentialsOptions TestAuthority::Issue(const std::string& worker) {
  absl::StatusOr<KeyAndCertificate> pair = IssueCertificate(
      authority_, {.job = job_, .worker = worker}, absl::Hours(24));
  EXPECT_THAT(pair, async::IsOk());
  CredentialsOptions options;
  options.certificate_path = Write(worker + ".crt", pair->certificate);
  options.key_path = Write(worker + ".key", pair->key);
  options.ca_path = directory_ + "/ca.crt";
  options.reload_interval = absl::Seconds(1);
  return options;
}

std::shared_ptr<const Credentials> TestAuthority::Make(
    const std::string& worker) {
  auto made = Credentials::Create(Issue(worker),
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
