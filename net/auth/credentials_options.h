// Files and token that make up the credentials of a process.

#ifndef HAWSER_NET_AUTH_CREDENTIALS_OPTIONS_H_
#define HAWSER_NET_AUTH_CREDENTIALS_OPTIONS_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace hawser::net {

struct CredentialsOptions {
  // PEM files. Set all three, or none to disable TLS. The key file must be
  // private (0600). The files are reread every `reload_interval`: replace them
  // together, by renaming a directory or switching a symbolic link.
  std::string certificate_path = {};
  std::string key_path = {};
  // Certificates of the CAs that must have signed peers' certificates.
  std::string ca_path = {};
  // Directory of certificate revocation lists, named as by `openssl rehash`;
  // empty for none. Requires TLS.
  std::string crl_directory = {};
  // File with an operator's rules for the servers of the process, see
  // AuthorizationPolicy; empty for none. Requires TLS.
  std::string authorization_policy_path = {};
  // Interval at which all these files are reread; whole seconds, at least 1.
  absl::Duration reload_interval = absl::Seconds(10);

  // The job's token, 64 hexadecimal digits, which each call must carry. Read
  // from a private file (0600) or from an inherited descriptor, which is
  // closed. Set at most one of them; if neither is set, calls carry no token.
  std::string token_path = {};
  std::optional<int> token_fd = {};
};

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_CREDENTIALS_OPTIONS_H_
