// Certificates and tokens for tests.

#ifndef HAWSER_NET_TESTING_TEST_CREDENTIALS_H_
#define HAWSER_NET_TESTING_TEST_CREDENTIALS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "net/auth/certificate.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"

namespace hawser::net {

// A directory of files of one job's authority, removed in the end.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& job = "default");
  ~TestAuthority();

  // Files of a new certificate of `worker`, in the place of older ones of that
  // name; one that has expired, for a lifetime of less than a second.
  CredentialsOptions Issue(const std::string& worker,
                           absl::Duration lifetime = absl::Hours(24),
                           const std::vector<std::string>& roles = {});
  // Lists what Issue gave `worker` last in crl_directory().
  void Revoke(const std::string& worker);
  // The credentials of those.
  std::shared_ptr<const Credentials> Make(
      const std::string& worker, const std::vector<std::string>& roles = {});

  // Writes with mode 0600 below the directory and returns the path.
  std::string Write(const std::string& name, const std::string& content,
                    int mode = 0600);

  const std::string& directory() const { return directory_; }
  std::string crl_directory() const { return directory_ + "/crl"; }
  const KeyAndCertificate& authority() const { return authority_; }

 private:
  const std::string job_;
  std::string directory_;
  KeyAndCertificate authority_;
  // The newest, and how many there are.
  std::string revocation_list_;
  int num_revocation_lists_ = 0;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TESTING_TEST_CREDENTIALS_H_
