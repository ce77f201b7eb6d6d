#include "net/auth/authorization_policy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(AuthorizationRulesTest, DenyGoesBeforeAllow) {
  const auto rules = AuthorizationRules::Parse(R"json({
    "name": "job",
    "deny_rules": [
      {"name": "no pushes",
       "source": {"principals": ["hawser://j/w1", "hawser-role:intern"]},
       "request": {"paths": ["/a.A/Push", "/b.*"]}},
      {"name": "nobody", "request": {"paths": ["*/Never"]}}],
    "allow_rules": [
      {"name": "job", "source": {"principals": ["hawser://j/*"]}},
      {"name": "probes", "source": {"principals": []},
       "request": {"paths": ["/health/Check"]}}]
  })json");
  ASSERT_THAT(rules, IsOk());
  const auto check = [&](const std::vector<std::string>& names,
                         const char* path) {
    return rules->Check(names, path);
  };
  EXPECT_THAT(check({"hawser://j/w2"}, "/a.A/Push"), IsOk());
  EXPECT_THAT(check({"hawser://j/w1"}, "/a.A/Pull"), IsOk());
  for (const char* path : {"/a.A/Push", "/b.B/Any"}) {
    EXPECT_THAT(check({"hawser://j/w1"}, path),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("'no pushes'")));
    EXPECT_THAT(check({"hawser://j/w2", "hawser-role:intern"}, path),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
  EXPECT_THAT(
      check({"hawser://j/w2"}, "/a.A/Never"),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("'nobody'")));
  EXPECT_THAT(
      check({"hawser://k/w2"}, "/a.A/Pull"),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("no rule")));
  EXPECT_THAT(check({}, "/a.A/Pull"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(check({}, "/health/Check"), IsOk());
}

// Unknown content must not be ignored.
TEST(AuthorizationRulesTest, UnknownContentIsRejected) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {
      {"", "not JSON"},
      {"[]", "not an object"},
      {R"({"allow_rules": [{"name": "a"}]})", "no name"},
      {R"({"name": "a"})", "no allow_rules"},
      {R"({"name": "a", "allow_rules": []})", "no allow_rules"},
      {R"({"name": "a", "allow_rules": {}})", "not a list"},
      {R"({"name": "a", "allow_rules": [{}]})", "allow_rules[0] has no name"},
      {R"({"name": "a", "allow_rules": [{"name": "b"}], "deny_rule": []})",
       "'deny_rule' is not known"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "source": []}]})",
       "not an object"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "request":
          {"headers": []}}]})",
       "allow_rules[0].request: 'headers' is not known"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "source":
          {"principals": "w1"}}]})",
       "allow_rules[0].source.principals is not a list"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "source":
          {"principals": [""]}}]})",
       "not a non-empty string"},
      // Rules match the method's name, whether or not its requests are sent in
      // fragments.
      {R"({"name": "a", "allow_rules": [{"name": "b", "request":
          {"paths": ["/a.A/CallInFragments"]}}]})",
       "'/a.A/CallInFragments' would never match"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "request":
          {"paths": ["*InFragments"]}}]})",
       "'*InFragments' would never match"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "request":
          {"paths": ["*Fragments"]}}]})",
       "'*Fragments' would never match"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "request":
          {"paths": ["/a.A/CallInFragments*"]}}]})",
       "'/a.A/CallInFragments*' would never match"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "request":
          {"paths": ["*Call*"]}}]})",
       "'*Call*' has more than one *, or one inside"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "source":
          {"principals": ["hawser://*/w1"]}}]})",
       "'hawser://*/w1' has more than one *, or one inside"},
      {R"({"name": "a", "allow_rules": [{"name": "b", "source":
          {"principals": ["**"]}}]})",
       "'**' has more than one *, or one inside"},
  };
  for (const auto& [text, error] : kCases) {
    EXPECT_THAT(AuthorizationRules::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)))
        << text;
  }
}

// A policy in a file that is replaced while in use.
class AuthorizationPolicyFileTest : public testing::Test {
 protected:
  static std::string Denying(const std::string& name) {
    return R"({"name": "a", "deny_rules": [{"name": "d", "source":
        {"principals": [")" +
           name + R"("]}}], "allow_rules": [{"name": "b"}]})";
  }

  void Write(const std::string& text) {
    std::ofstream(path_ + ".new") << text;
    std::filesystem::rename(path_ + ".new", path_);
  }
  // Returns once a reader has opened the file, which is unreadable.
  void AwaitReader() {
    std::filesystem::remove(path_);
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    const int fd = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    close(fd);
  }

  void Watch() {
    auto policy = AuthorizationPolicy::Watch(path_, absl::Milliseconds(1));
    ASSERT_THAT(policy, IsOk());
    policy_ = *std::move(policy);
  }
  bool Denied(const std::string& name) {
    return absl::IsPermissionDenied(policy_->Check({name}, "/a.A/B"));
  }

  const std::string path_ = testing::TempDir() + "/policy.json";
  std::shared_ptr<AuthorizationPolicy> policy_;
};

TEST_F(AuthorizationPolicyFileTest, InvalidFileKeepsThePreviousRules) {
  Write(Denying("w1"));
  Watch();
  EXPECT_TRUE(Denied("w1"));
  EXPECT_FALSE(Denied("w2"));
  Write("{");
  for (int i = 0; i < 2; ++i) {
    AwaitReader();
    EXPECT_TRUE(Denied("w1"));
    EXPECT_FALSE(Denied("w2"));
  }
  Write(Denying("w2"));
  while (!Denied("w2")) std::this_thread::yield();
  EXPECT_FALSE(Denied("w1"));
}

TEST_F(AuthorizationPolicyFileTest, InvalidFileIsLoggedOnceAMinute) {
  Write(Denying("w1"));
  Watch();
  testing::internal::CaptureStderr();
  const auto start = std::chrono::steady_clock::now();
  // The file is read more than once; some reads find no file.
  for (int i = 0; i < 20; ++i) AwaitReader();
  // Waits for the read in progress.
  policy_.reset();
  const int64_t minutes = std::chrono::duration_cast<std::chrono::minutes>(
                              std::chrono::steady_clock::now() - start)
                              .count();
  const std::vector<std::string> lines = absl::StrSplit(
      testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], HasSubstr("previous rules stay"));
  EXPECT_LE(static_cast<int64_t>(lines.size()), 1 + minutes);
}

// A disk that does not respond must not block calls.
TEST_F(AuthorizationPolicyFileTest, CallsDoNotReadTheFile) {
  Write(Denying("w1"));
  Watch();
  AwaitReader();
  EXPECT_TRUE(Denied("w1"));
}

}  // namespace
}  // namespace hawser::net
