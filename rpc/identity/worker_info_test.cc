#include "rpc/identity/worker_info.h"

#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(TypesTest, WorkerNamesOfAllowedCharactersAreValid) {
  EXPECT_THAT(ValidateWorkerName("a"), IsOk());
  EXPECT_THAT(ValidateWorkerName("Trainer-0.zone_1:7"), IsOk());
  EXPECT_THAT(ValidateWorkerName(std::string(127, 'x')), IsOk());
}

TEST(TypesTest, OtherWorkerNamesAreInvalid) {
  for (const char* name : {"", "a b", "a/b", "caf\xc3\xa9", "a\n", ".", "..",
                           ".a", "-x", "_a", ":1"}) {
    EXPECT_THAT(ValidateWorkerName(name),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
  EXPECT_THAT(ValidateWorkerName(std::string(128, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("128")));
  EXPECT_THAT(ValidateWorkerName("a\tb"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\\t")));
}

TEST(TypesTest, WorkerIdsAreRanks) {
  EXPECT_FALSE(WorkerId().valid());
  EXPECT_TRUE(WorkerId(0).valid());
  EXPECT_TRUE(WorkerId(WorkerId::kMax).valid());
  EXPECT_FALSE(WorkerId(WorkerId::kMax + 1).valid());
  EXPECT_LT(WorkerId(1), WorkerId(2));
}

TEST(TypesTest, IncarnationsDiffer) {
  const Incarnation a = NewIncarnation();
  EXPECT_NE(ToNumber(a), 0u);
  EXPECT_NE(a, NewIncarnation());
}

TEST(TypesTest, WorkersAreShownWithRankAndIncarnation) {
  EXPECT_EQ(ToString(WorkerInfo{"ps0", WorkerId(3), Incarnation{0xc0ffee}, ""}),
            "worker 'ps0' (rank 3, incarnation 0000000000c0ffee)");
  EXPECT_EQ(ToString(WorkerInfo{"", WorkerId(3), Incarnation{0xc0ffee}, ""}),
            "worker (rank 3, incarnation 0000000000c0ffee)");
}

}  // namespace
}  // namespace hawser::rpc
