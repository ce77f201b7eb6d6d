// What an operator allows, besides what programs do: a file of rules.

#ifndef HAWSER_NET_AUTHORIZATION_POLICY_H_
#define HAWSER_NET_AUTHORIZATION_POLICY_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
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
// {"paths": [...]}}; a list that is empty or not there fits everything. Texts
// may begin or end with "*". A path stands for the method, whichever way its
// requests come (proto/pieces.proto). A call is refused if a rule to deny fits
// it, or none to allow. What else the file says is an error: it would not be
// heeded.
class AuthorizationRules {
 public:
  // kInvalidArgument says what of `text` is wrong.
  static absl::StatusOr<AuthorizationRules> Parse(const std::string& text);

  // Whether whoever has `names` may call `path`, "/package.Service/Method", or
  // the same with InPieces after it.
  // kPermissionDenied naming the rule, if it is one that denies.
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

// Such a file, which is read again with a call at least `reload_interval` after
// it was read last. What cannot be used then is told on stderr, and the rules
// read before stay. Thread-safe.
class AuthorizationPolicy {
 public:
  // Errors name the file:
  //   kNotFound, kPermissionDenied  it cannot be read.
  //   kInvalidArgument              it holds no rules, saying why.
  static absl::StatusOr<std::shared_ptr<AuthorizationPolicy>> Watch(
      const std::string& path, absl::Duration reload_interval);

  // As AuthorizationRules::Check.
  absl::Status Check(const std::vector<std::string>& names,
                     std::string_view path);

 private:
  AuthorizationPolicy(std::string path, absl::Duration reload_interval)
      : path_(std::move(path)),
        reload_interval_(absl::ToChronoNanoseconds(reload_interval)) {}

  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const AuthorizationRules> rules();

  const std::string path_;
  const std::chrono::nanoseconds reload_interval_;

  async::Mutex mutex_;
  std::chrono::steady_clock::time_point read_at_ ABSL_GUARDED_BY(mutex_);
  // What was read last, also if it holds no rules.
  std::string text_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const AuthorizationRules> rules_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTHORIZATION_POLICY_H_
