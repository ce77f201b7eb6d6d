// Authorization policy of an operator, read from a file of rules and applied in
// addition to the checks of the programs.

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

// Such a file, which a thread of its own reads again every `reload_interval`.
// What cannot be used then is told on stderr, once a minute at most, and the
// rules read before stay.
// Thread-safe.
class AuthorizationPolicy {
 public:
  // Errors name the file:
  //   kNotFound, kPermissionDenied  it cannot be read.
  //   kInvalidArgument              it holds no rules, saying why.
  static absl::StatusOr<std::shared_ptr<AuthorizationPolicy>> Watch(
      const std::string& path, absl::Duration reload_interval);

  // Waits for a reading that is under way.
  ~AuthorizationPolicy();

  // As AuthorizationRules::Check. Waits for no file.
  absl::Status Check(const std::vector<std::string>& names,
                     std::string_view path) const;

 private:
  using Rules = std::shared_ptr<const AuthorizationRules>;

  AuthorizationPolicy(std::string path, absl::Duration reload_interval)
      : path_(std::move(path)), reload_interval_(reload_interval) {}

  // Nothing if the file says what it said the last time, where it could be read
  // then.
  absl::StatusOr<Rules> Read();
  void Run();
  // False if it is to end.
  bool AwaitInterval();

  const std::string path_;
  const absl::Duration reload_interval_;
  // What was read last, also if it holds no rules. Of the thread.
  std::string text_;

  mutable async::Mutex mutex_;
  async::CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Rules rules_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_AUTHORIZATION_POLICY_H_
