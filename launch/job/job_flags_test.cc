#include "launch/job/job_flags.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/job/job_options.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<JobRole> kRoles = {{"server", 2}, {"trainer", 3}};

class JobFlagsTest : public testing::Test {
 protected:
  static void Set(const std::string& flag, const std::string& value) {
    std::string error;
    ASSERT_TRUE(absl::FindCommandLineFlag(flag)->ParseFrom(value, &error))
        << error;
  }

  const absl::FlagSaver saver_;
};

TEST_F(JobFlagsTest, ProcessKnowsItsPlaceInTheJob) {
  Set("role", "trainer");
  Set("index", "1");
  Set("master", "127.0.0.1:29500");
  Set("silent_limit", "20s");
  Set("token_file", "/certs/{worker}/token");
  const absl::StatusOr<JobOptions> job = ReadJobFlags(kRoles);
  ASSERT_THAT(job, IsOk());
  EXPECT_EQ(job->world_size(), 5);
  EXPECT_EQ(job->rank(), 3);
  EXPECT_EQ(job->name(), "trainer1");
  EXPECT_EQ(job->master, "tcp://127.0.0.1:29500");
  EXPECT_EQ(job->silent_limit, absl::Seconds(20));
  EXPECT_EQ(job->credentials.token_path, "/certs/trainer1/token");
  EXPECT_THAT(job->workers("server"), ElementsAre("server0", "server1"));
  EXPECT_EQ(job->count("reader"), 0);
}

TEST_F(JobFlagsTest, LauncherNeedsNoMaster) {
  const absl::StatusOr<JobOptions> job = ReadJobFlags(kRoles);
  ASSERT_THAT(job, IsOk());
  EXPECT_EQ(job->name(), "launcher");
}

struct Wrong {
  std::vector<std::pair<std::string, std::string>> flags;
  std::string error;
  std::vector<JobRole> roles = kRoles;
};

class WrongJobFlagsTest : public JobFlagsTest,
                          public testing::WithParamInterface<Wrong> {};

TEST_P(WrongJobFlagsTest, AreNamed) {
  for (const auto& [flag, value] : GetParam().flags) Set(flag, value);
  EXPECT_THAT(ReadJobFlags(GetParam().roles),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().error)));
}

INSTANTIATE_TEST_SUITE_P(
    JobFlagsTest, WrongJobFlagsTest,
    testing::Values(
        Wrong{{{"role", "dog"}}, "--role=dog: must be server or trainer"},
        Wrong{{{"role", "server"}}, "--master=: --role requires host:port"},
        Wrong{{{"role", "server"}, {"master", "ftp://h"}}, "ftp://h"},
        Wrong{{{"role", "server"}, {"index", "2"}, {"master", "a:1"}},
              "--index=2: must be 0 to 1"},
        Wrong{{{"role", "server"}}, "the program runs in one process", {}},
        Wrong{{{"silent_limit", "0"}}, "--silent_limit=0: must be greater"},
        Wrong{{{"notice_period", "inf"}}, "--notice_period=inf"}));

TEST(CheckAtLeastTest, NamesTheFlag) {
  EXPECT_THAT(CheckAtLeast("epochs", 1, 1), IsOk());
  EXPECT_THAT(CheckAtLeast("epochs", 0, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--epochs=0: must be 1 or greater")));
}

}  // namespace
}  // namespace hawser::launch
