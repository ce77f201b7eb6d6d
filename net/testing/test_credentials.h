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

// A directory with the files of one job's authority, removed on destruction.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& job = "default");
  ~TestAuthority();

  // Writes the files of a new certificate of `worker`, replacing older ones of
  // that name. A lifetime of less than a second creates an expired certificate.
  CredentialsOptions Issue(const std::string& worker,
                           absl::Duration lifetime = absl::Hours(24),
                           const std::vector<std::string>& roles = {});
  // Revokes the last certificate of `worker` in crl_directory().
  void Revoke(const std::string& worker);
  // Creates credentials from those files.
  std::shared_ptr<const Credentials> Make(
      const std::string& worker, const std::vector<std::string>& roles = {});

  // Writes a file with mode 0600 in the directory and returns its path.
  std::string Write(const std::string& name, const std::string& content,
                    int mode = 0600);

  const std::string& directory() const { return directory_; }
  std::string crl_directory() const { return directory_ + "/crl"; }
  const KeyAndCertificate& authority() const { return authority_; }

 private:
  const std::string job_;
  std::string directory_;
  KeyAndCertificate authority_;
  // The newest list, and the number of lists.
  std::string revocation_list_;
  int num_revocation_lists_ = 0;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TESTING_TEST_CREDENTIALS_H_
