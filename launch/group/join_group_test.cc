#include "launch/group/join_group.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/grpc/server.h"
#include "telemetry/testing/recorded_log.h"

namespace hawser::launch {
namespace {

using collectives::ProcessGroup;
using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::Contains;
using ::testing::HasSubstr;

class JoinGroupTest : public testing::Test {
 protected:
  JoinGroupTest() { Clear(); }
  ~JoinGroupTest() override { Clear(); }

  static void Clear() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR",
                             "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                             "TF_CONFIG", "DMLC_ROLE", "SLURM_PROCID"}) {
      unsetenv(name);
    }
  }

  static void SetPlace(int rank, int size, int port) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
    setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  }

  static void ExpectGroupOfOne() {
    const absl::StatusOr<std::unique_ptr<ProcessGroup>> group = JoinGroup();
    ASSERT_THAT(group, IsOk());
    EXPECT_EQ((*group)->rank(), 0);
    EXPECT_EQ((*group)->size(), 1);
    EXPECT_THAT((*group)->Barrier(), IsOk());
  }
};

TEST_F(JoinGroupTest, WithoutALauncherItIsAGroupOfOne) { ExpectGroupOfOne(); }

TEST_F(JoinGroupTest, AGroupOfOneNeedsNoPort) {
  SetPlace(0, 1, 0);
  ExpectGroupOfOne();
  const auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  SetPlace(0, 1, (*server)->port());
  ExpectGroupOfOne();
}

TEST_F(JoinGroupTest, APortThatOthersCannotFindIsRefused) {
  for (const int rank : {0, 1}) {
    SetPlace(rank, 2, 0);
    EXPECT_THAT(JoinGroup(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("MASTER_PORT is 0")));
  }
}

TEST_F(JoinGroupTest, APortInUseIsRefused) {
  const auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  SetPlace(0, 2, (*server)->port());
  EXPECT_THAT(JoinGroup(), StatusIs(absl::StatusCode::kAlreadyExists,
                                    HasSubstr((*server)->address())));
}

TEST_F(JoinGroupTest, ARankWithoutASizeIsRefused) {
  setenv("RANK", "0", 1);
  EXPECT_THAT(JoinGroup(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("set WORLD_SIZE")));
}

TEST_F(JoinGroupTest, ALoneRankNamesThoseThatHaveNotCome) {
  const auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  SetPlace(1, 3, (*server)->port());
  const telemetry::RecordedLog log;
  EXPECT_THAT(JoinGroup({.start_timeout = absl::Seconds(4)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("in time: rank 0, rank 2")));
  // Long before the deadline of users, which is minutes away.
  EXPECT_THAT(log.messages(),
              Contains(HasSubstr("rank 1 of a process group of "
                                 "3 waits for rank 0, rank 2")));
}

}  // namespace
}  // namespace hawser::launch
