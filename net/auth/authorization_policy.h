// Authorization policy of an operator, read from a file of rules and enforced
// in addition to the programs' own checks.

#ifndef HAWSER_NET_AUTH_AUTHORIZATION_POLICY_H_
#define HAWSER_NET_AUTH_AUTHORIZATION_POLICY_H_

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/mutex.h"

namespace hawser::net {

// The rules of one file: gRPC's authorization policy (proposal A43) without
// `headers`, in JSON:
//
//   {"name": "...", "deny_rules": [RULE...], "allow_rules": [RULE...]}
//
// A RULE is {"name": "...", "source": {"principals": [...]}, "request":
// {"paths": [...]}}; an empty or absent list matches everything. Strings may
// begin or end with "*". A path covers the method whether or not its requests
// are sent in fragments (proto/fragments.proto). A call is denied if a deny
// rule matches it or no allow rule does. Any other key is an error, since it
// would be ignored.
class AuthorizationRules {
 public:
  // kInvalidArgument, naming the faulty part of `text`.
  static absl::StatusOr<AuthorizationRules> Parse(const std::string& text);

  // Checks whether a caller with any of `names` may call `path`,
  // "/package.Service/Method", optionally with InFragments appended.
  // kPermissionDenied, naming the deny rule if one matched.
  absl::Status Check(const std::vector<std::string>& names,
                     std::string_view path) const;

  struct Rule {
    std::string name;
    std::vector<std::string> principals;
    std::vector<std::string> paths;
  };

 private:
  std::vector<Rule> deny_;
  std::vector<Rule> allow_;
};

// The rules of one file, which a thread of this object rereads every
// `reload_interval`. If the file cannot be used, an error is logged to stderr,
// at most once a minute, and the previous rules stay in force. Thread-safe.
class AuthorizationPolicy {
 public:
  // Errors name the file:
  //   kNotFound, kPermissionDenied  the file cannot be read.
  //   kInvalidArgument              the rules are malformed.
  static absl::StatusOr<std::shared_ptr<AuthorizationPolicy>> Watch(
      const std::string& path, absl::Duration reload_interval);

  // Waits for a read in progress.
  ~AuthorizationPolicy();

  // As AuthorizationRules::Check. Does no file I/O.
  absl::Status Check(const std::vector<std::string>& names,
                     std::string_view path) const;

 private:
  using Rules = std::shared_ptr<const AuthorizationRules>;

  AuthorizationPolicy(std::string path, absl::Duration reload_interval)
      : path_(std::move(path)), reload_interval_(reload_interval) {}

  // Returns null if the file is unchanged since the last successful read.
  absl::StatusOr<Rules> Read();
  void Run();
  // Returns false if the thread must exit.
  bool AwaitInterval();

  const std::string path_;
  const absl::Duration reload_interval_;
  // Text that was read last, even if malformed. Used only by the thread.
  std::string text_;

  mutable async::Mutex mutex_;
  async::CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Rules rules_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_AUTHORIZATION_POLICY_H_
