// Tests of the calls that an operator's policy file permits, over gRPC, through
// launch::Worker.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "rpc/functions/function.h"
#include "tests/security/job_credentials_test_fixture.h"

namespace hawser {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;
using launch::Worker;
using launch::WorkerOptions;
using testing::AllOf;
using testing::HasSubstr;

inline constexpr rpc::Function<uint64_t(std::string)> kLength{"policy.Length"};

// A policy that denies calls of `path` by the principal `principal`.
std::string Denying(const std::string& principal, const std::string& path) {
  return absl::StrCat(R"json({
    "name": "job",
    "deny_rules": [{
      "name": "one",
      "source": {"principals": [")json",
                      principal, R"json("]},
      "request": {"paths": [")json",
                      path, R"json("]}
    }],
    "allow_rules": [{"name": "others"}]
  })json");
}

constexpr char kCall[] = "/hawser.v1.WorkerService/Call";

class AuthorizationPolicyTest : public SecureJobTest {
 protected:
  AuthorizationPolicyTest() {
    EXPECT_THAT(registry_.Register(kTwice, [](int64_t x) { return 2 * x; }),
                IsOk());
    EXPECT_THAT(
        registry_.Register(kLength,
                           [](const std::string& text) { return text.size(); }),
        IsOk());
  }

  // Starts worker 0 with `policy`.
  std::unique_ptr<Worker> StartKeeper(const std::string& policy) {
    WorkerOptions options = OptionsOf(0);
    options.network.credentials.authorization_policy_path = WritePolicy(policy);
    return Start(std::move(options));
  }

  // Replaces the policy file atomically and returns its path.
  std::string WritePolicy(const std::string& policy) {
    const std::string path = authority_.directory() + "/policy.json";
    std::filesystem::rename(authority_.Write("policy.new", policy), path);
    return path;
  }
};

// The workers run on one machine. Later calls use shared memory.
TEST_F(AuthorizationPolicyTest, CallsThroughSharedMemoryAreDeniedToo) {
  auto keeper = StartKeeper(Denying("hawser://default/worker2", kCall));
  auto allowed = Start(OptionsOf(1));
  auto denied = Start(OptionsOf(2));
  for (int i = 0; i < 200; ++i) {
    ASSERT_THAT(allowed->agent().Sync("worker0", kTwice, i),
                IsOkAndHolds(2 * i));
    ASSERT_THAT(
        denied->agent().Sync("worker0", kTwice, i),
        StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("worker0")));
  }
  // Long requests are sent in fragments.
  const std::string text(4 << 20, 'a');
  EXPECT_THAT(allowed->agent().Sync("worker0", kLength, text),
              IsOkAndHolds(text.size()));
  EXPECT_THAT(denied->agent().Sync("worker0", kLength, text),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("worker0"), HasSubstr("'one'"))));
  // Only the policy of the callee applies.
  EXPECT_THAT(keeper->agent().Sync("worker2", kTwice, 4), IsOkAndHolds(8));
}

TEST_F(AuthorizationPolicyTest, RolesArePrincipals) {
  auto keeper = StartKeeper(Denying("hawser-role:trainer", kCall));
  auto allowed = Start(OptionsOf(1, {"ps"}));
  auto denied = Start(OptionsOf(2, {"ps", "trainer"}));
  EXPECT_THAT(allowed->agent().Sync("worker0", kTwice, 4), IsOkAndHolds(8));
  EXPECT_THAT(denied->agent().Sync("worker0", kTwice, 4),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(AuthorizationPolicyTest, RunningWorkersRereadThePolicy) {
  auto keeper = StartKeeper(Denying("hawser://default/worker9", kCall));
  auto worker = Start(OptionsOf(1));
  const auto await = [&](absl::StatusCode code) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    absl::Status status;
    do {
      status = worker->agent().Sync("worker0", kTwice, 4).status();
    } while (status.code() != code && absl::Now() < end);
    return status;
  };
  EXPECT_THAT(await(absl::StatusCode::kOk), IsOk());
  WritePolicy(Denying("hawser://default/worker1", kCall));
  EXPECT_THAT(await(absl::StatusCode::kPermissionDenied),
              StatusIs(absl::StatusCode::kPermissionDenied));
  WritePolicy(Denying("hawser://default/worker9", kCall));
  EXPECT_THAT(await(absl::StatusCode::kOk), IsOk());
}

TEST_F(AuthorizationPolicyTest, StoreOfRankZeroEnforcesThePolicy) {
  WorkerOptions options = OptionsOf(0);
  options.network.credentials.authorization_policy_path =
      WritePolicy(Denying("hawser://default/worker2", "/hawser.v1.Store/*"));
  options.meeting_place.store = nullptr;
  options.meeting_place.master_port = 0;
  auto keeper = Start(std::move(options));
  for (int rank : {1, 2}) {
    WorkerOptions joining = OptionsOf(rank);
    joining.meeting_place.store = nullptr;
    joining.meeting_place.url = absl::StrCat("tcp://", keeper->master());
    const auto worker = Worker::Start(std::move(joining));
    if (rank == 1) {
      EXPECT_THAT(worker, IsOk());
    } else {
      EXPECT_THAT(worker, StatusIs(absl::StatusCode::kPermissionDenied));
    }
  }
}

TEST_F(AuthorizationPolicyTest, WorkersWithInvalidPoliciesDoNotStart) {
  const auto start = [&](const std::string& path) {
    WorkerOptions options = OptionsOf(0);
    options.network.credentials.authorization_policy_path = path;
    return Worker::Start(std::move(options)).status();
  };
  EXPECT_THAT(
      start("/none/policy.json"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none/policy.json")));
  for (const char* text : {"", "{", R"({"name": "no rules"})",
                           R"({"name": "a", "allow_rules": [{}]})"}) {
    const std::string path = WritePolicy(text);
    EXPECT_THAT(start(path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)))
        << text;
  }
  WorkerOptions open = OptionsOf(0);
  open.network.credentials = {};
  open.network.credentials.authorization_policy_path =
      WritePolicy(Denying("hawser://default/worker1", kCall));
  EXPECT_THAT(Worker::Start(std::move(open)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("without certificates")));
  // The environment applies if the options do not name a policy.
  setenv("HAWSER_AUTHORIZATION_POLICY", "/none/policy.json", 1);
  EXPECT_THAT(start(""), StatusIs(absl::StatusCode::kNotFound,
                                  HasSubstr("/none/policy.json")));
  unsetenv("HAWSER_AUTHORIZATION_POLICY");
  EXPECT_THAT(start(""), IsOk());
}

}  // namespace
}  // namespace hawser
