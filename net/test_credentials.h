// Certificates and tokens for tests.

#ifndef HAWSER_NET_TEST_CREDENTIALS_H_
#define HAWSER_NET_TEST_CREDENTIALS_H_

#include <memory>
#include <string>

#include "net/certificate.h"
#include "net/credentials.h"
#include "net/identity.h"

namespace hawser::net {

// A directory of files of one job's authority, removed in the end.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& job = "default");
  ~TestAuthority();

  // Files of a new certificate of `worker`.
  CredentialsOptions Issue(const std::string& worker);
  // The credentials of those.
  std::shared_ptr<const Credentials> Make(const std::string& worker);

  // Writes with mode 0600 below the directory and returns the path.
  std::string Write(const std::string& name, const std::string& content,
                    int mode = 0600);

  const std::string& directory() const { return directory_; }
  const KeyAndCertificate& authority() const { return authority_; }

 private:
  const std::string job_;
  std::string directory_;
  KeyAndCertificate authority_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TEST_CREDENTIALS_H_
