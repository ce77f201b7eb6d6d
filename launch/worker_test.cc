#include "launch/worker.h"

#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/function.h"
#include "rref/rref.h"
#include "store/hash_store.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;

inline constexpr rpc::Function<int64_t(int64_t)> kTwice{"worker_test.Twice"};

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
      unsetenv(name);
    }
    EXPECT_THAT(registry_.Register(kTwice, [](int64_t x) { return 2 * x; }),
                IsOk());
  }

  rpc::FunctionRegistry registry_;
};

TEST_F(WorkerTest, WorldOfTwoMeetsInAStoreCallsAndLeaves) {
  store::HashStore store;
  auto start = [&](int rank) {
    WorkerOptions options;
    options.rank = rank;
    options.world_size = 2;
    options.store = &store;
    options.registry = &registry_;
    return Worker::Start(std::move(options));
  };
  auto other = std::async(std::launch::async, start, 1);
  auto first = start(0);
  auto second = other.get();
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*first)->name(), "worker0");
  EXPECT_EQ((*second)->rank(), 1);
  EXPECT_EQ((*second)->world_size(), 2);
  EXPECT_EQ((*first)->master(), "");
  EXPECT_THAT((*first)->agent().Sync("worker1", kTwice, 4), IsOkAndHolds(8));
  {
    auto rref = rref::Remote((*second)->agent(), "worker0", kTwice, 5);
    ASSERT_THAT(rref, IsOk());
    EXPECT_THAT(rref->ToHere(), IsOkAndHolds(10));
  }
  auto shutdown =
      std::async(std::launch::async, [&] { return (*second)->Shutdown(); });
  EXPECT_THAT((*first)->Shutdown(), IsOk());
  EXPECT_THAT(shutdown.get(), IsOk());
  EXPECT_THAT((*first)->Shutdown(), IsOk());
}

TEST_F(WorkerTest, RankZeroKeepsTheStoreOfWorkersThatComeAndGo) {
  setenv("RANK", "0", 1);
  setenv("MASTER_PORT", "0", 1);
  WorkerOptions first_options;
  first_options.name = "keeper";
  first_options.registry = &registry_;
  auto keeper = Worker::Start(std::move(first_options));
  ASSERT_THAT(keeper, IsOk());
  const std::string master = (*keeper)->master();
  setenv("MASTER_PORT", master.substr(master.rfind(':') + 1).c_str(), 1);
  for (int rank = 1; rank <= 2; ++rank) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    auto guest = Worker::Start({});
    ASSERT_THAT(guest, IsOk());
    EXPECT_EQ((*guest)->rank(), rank);
    EXPECT_EQ((*guest)->world_size(), std::nullopt);
    EXPECT_THAT((*guest)->agent().Sync("keeper", kTwice, rank),
                IsOkAndHolds(2 * rank));
    EXPECT_THAT((*guest)->Shutdown(), IsOk());
  }
  EXPECT_THAT((*keeper)->Shutdown(), IsOk());
}

TEST_F(WorkerTest, MissingAndWrongSettingsAreNamed) {
  EXPECT_THAT(Worker::Start({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          testing::HasSubstr("RANK")));
  setenv("RANK", "one", 1);
  EXPECT_THAT(Worker::Start({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          testing::HasSubstr("'one'")));
  setenv("RANK", "2", 1);
  setenv("WORLD_SIZE", "2", 1);
  EXPECT_THAT(Worker::Start({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("rank 2 of a world of 2")));
  setenv("WORLD_SIZE", "3", 1);
  setenv("MASTER_PORT", "70000", 1);
  EXPECT_THAT(Worker::Start({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          testing::HasSubstr("70000")));
}

}  // namespace
}  // namespace hawser::launch
