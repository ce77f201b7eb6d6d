#include "net/auth/authorization_policy.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "fs/private_file.h"
#include "net/in_fragments.h"
#include "nlohmann/json.hpp"
#include "telemetry/log.h"
#include "telemetry/log_rate_limiter.h"

namespace hawser::net {
namespace {

using nlohmann::json;

absl::Status Wrong(const std::string& where, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(where, " ", what));
}

absl::Status CheckKeys(const json& object, const std::string& where,
                       std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return Wrong(where, "is not an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return Wrong(absl::StrCat(where, ": '", key, "'"),
                   "is not known and would be ignored: remove it");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadName(const json& object,
                                     const std::string& where) {
  const auto name = object.find("name");
  if (name == object.end() || !name->is_string() ||
      name->get_ref<const std::string&>().empty()) {
    return Wrong(where, "has no name");
  }
  return name->get<std::string>();
}

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

// Checks one pattern of a rule; `place` names it in errors.
absl::Status CheckPattern(std::string_view pattern, const std::string& place,
                          bool is_path) {
  std::string_view text = pattern;
  const bool is_prefix = text.ends_with('*');
  const bool is_suffix = !is_prefix && text.starts_with('*');
  if (is_prefix) text.remove_suffix(1);
  if (is_suffix) text.remove_prefix(1);
  if (text.find('*') != std::string_view::npos) {
    return Wrong(absl::StrCat(place, ": '", ToAbsl(pattern), "'"),
                 "has more than one *, or one inside: a pattern may only begin "
                 "or end with *");
  }
  if (is_path &&
      (text.ends_with(kInFragments) ||
       (is_suffix && !text.empty() && kInFragments.ends_with(text)))) {
    return Wrong(absl::StrCat(place, ": '", ToAbsl(pattern), "'"),
                 "would never match: a rule for a method also covers its "
                 "InFragments variant, so leave InFragments out");
  }
  return absl::OkStatus();
}

// The list `key` of `object[part]`; empty if there is none.
absl::StatusOr<std::vector<std::string>> ReadTexts(const json& object,
                                                   const char* part,
                                                   const char* key,
                                                   const std::string& where) {
  std::vector<std::string> texts;
  const auto found = object.find(part);
  if (found == object.end()) return texts;
  const std::string place = absl::StrCat(where, ".", part);
  RETURN_IF_ERROR(CheckKeys(*found, place, {key}));
  const auto list = found->find(key);
  if (list == found->end()) return texts;
  if (!list->is_array())
    return Wrong(absl::StrCat(place, ".", key), "is not a list");
  for (const json& text : *list) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      return Wrong(absl::StrCat(place, ".", key),
                   "has an element that is not a non-empty string");
    }
    texts.push_back(text.get<std::string>());
    RETURN_IF_ERROR(CheckPattern(texts.back(), absl::StrCat(place, ".", key),
                                 std::string_view(key) == "paths"));
  }
  return texts;
}

absl::StatusOr<std::vector<AuthorizationRules::Rule>> ReadRules(
    const json& policy, const char* key) {
  std::vector<AuthorizationRules::Rule> rules;
  const auto list = policy.find(key);
  if (list == policy.end()) return rules;
  if (!list->is_array()) return Wrong(key, "is not a list");
  for (const json& object : *list) {
    const std::string where = absl::StrCat(key, "[", rules.size(), "]");
    RETURN_IF_ERROR(CheckKeys(object, where, {"name", "source", "request"}));
    AuthorizationRules::Rule rule;
    ASSIGN_OR_RETURN(rule.name, ReadName(object, where));
    ASSIGN_OR_RETURN(rule.principals,
                     ReadTexts(object, "source", "principals", where));
    ASSIGN_OR_RETURN(rule.paths, ReadTexts(object, "request", "paths", where));
    rules.push_back(std::move(rule));
  }
  return rules;
}

bool Fits(std::string_view pattern, std::string_view text) {
  if (pattern.ends_with('*')) {
    return text.starts_with(pattern.substr(0, pattern.size() - 1));
  }
  if (pattern.starts_with('*')) return text.ends_with(pattern.substr(1));
  return text == pattern;
}

bool AnyFits(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& pattern) { return Fits(pattern, text); });
}

bool Fits(const AuthorizationRules::Rule& rule,
          const std::vector<std::string>& names, std::string_view path) {
  if (!rule.paths.empty() && !AnyFits(rule.paths, path)) return false;
  return rule.principals.empty() ||
         std::any_of(names.begin(), names.end(), [&](const auto& name) {
           return AnyFits(rule.principals, name);
         });
}

}  // namespace

absl::StatusOr<AuthorizationRules> AuthorizationRules::Parse(
    const std::string& text) {
  const json policy = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (policy.is_discarded()) return Wrong("the policy", "is not JSON");
  RETURN_IF_ERROR(
      CheckKeys(policy, "the policy", {"name", "deny_rules", "allow_rules"}));
  RETURN_IF_ERROR(ReadName(policy, "the policy").status());
  AuthorizationRules rules;
  ASSIGN_OR_RETURN(rules.deny_, ReadRules(policy, "deny_rules"));
  ASSIGN_OR_RETURN(rules.allow_, ReadRules(policy, "allow_rules"));
  if (rules.allow_.empty()) {
    return Wrong("the policy", "has no allow_rules and would deny all calls");
  }
  return rules;
}

absl::Status AuthorizationRules::Check(const std::vector<std::string>& names,
                                       std::string_view path) const {
  if (path.ends_with(kInFragments)) path.remove_suffix(kInFragments.size());
  const auto fits = [&](const Rule& rule) { return Fits(rule, names, path); };
  const auto denied = std::find_if(deny_.begin(), deny_.end(), fits);
  if (denied != deny_.end()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the authorization policy denies this call: '", denied->name, "'"));
  }
  if (std::any_of(allow_.begin(), allow_.end(), fits)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "no rule of the authorization policy allows this call");
}

absl::StatusOr<std::shared_ptr<AuthorizationPolicy>> AuthorizationPolicy::Watch(
    const std::string& path, absl::Duration reload_interval) {
  std::shared_ptr<AuthorizationPolicy> policy(
      new AuthorizationPolicy(path, reload_interval));
  ASSIGN_OR_RETURN(Rules rules, policy->Read());
  {
    async::MutexLock lock(&policy->mutex_);
    policy->rules_ = std::move(rules);
  }
  policy->thread_ = std::thread([policy = policy.get()] { policy->Run(); });
  return policy;
}

AuthorizationPolicy::~AuthorizationPolicy() {
  {
    async::MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<AuthorizationPolicy::Rules> AuthorizationPolicy::Read() {
  absl::StatusOr<std::string> text = fs::ReadPublicFile(path_);
  if (!text.ok()) {
    text_.clear();
    return text.status();
  }
  if (*text == text_ && !text_.empty()) return nullptr;
  text_ = *std::move(text);
  absl::StatusOr<AuthorizationRules> rules = AuthorizationRules::Parse(text_);
  if (!rules.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", rules.status().message()));
  }
  return std::make_shared<const AuthorizationRules>(*std::move(rules));
}

bool AuthorizationPolicy::AwaitInterval() {
  const async::MonotonicTime end =
      async::AddDelay(std::chrono::steady_clock::now(), reload_interval_);
  async::MutexLock lock(&mutex_);
  while (!stopping_ && stop_.WaitUntil(&mutex_, end)) {
  }
  return !stopping_;
}

void AuthorizationPolicy::Run() {
  pthread_setname_np(pthread_self(), "policy");
  // The last error of reading the file; empty if there was none.
  std::string problem;
  telemetry::LogRateLimiter limit;
  while (AwaitInterval()) {
    absl::StatusOr<Rules> rules = Read();
    if (!rules.ok()) {
      problem = std::string(rules.status().message());
    } else if (*rules != nullptr) {
      problem.clear();
      async::MutexLock lock(&mutex_);
      rules_ = *std::move(rules);
    }
    if (!problem.empty() && limit.ShouldLog(std::chrono::steady_clock::now())) {
      telemetry::Log(
          telemetry::LogSeverity::kError,
          absl::StrCat("cannot reload the authorization policy; the previous "
                       "rules stay in force: ",
                       problem));
    }
  }
}

absl::Status AuthorizationPolicy::Check(const std::vector<std::string>& names,
                                        std::string_view path) const {
  Rules rules;
  {
    async::MutexLock lock(&mutex_);
    rules = rules_;
  }
  return rules->Check(names, path);
}

}  // namespace hawser::net
