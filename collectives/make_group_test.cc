#include "collectives/make_group.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/collectives.pb.h"
#include "store/barrier.h"
#include "store/hash/store.h"
#include "tensor/tensor.h"

namespace hawser::collectives {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AnyOf;
using ::testing::HasSubstr;

void RunRanks(int size, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

TEST(MakeGroupTest, BackendsAreChosenByName) {
  store::HashStore store;
  for (const std::string backend : {"", "host", "gloo"}) {
    RunRanks(3, [&](int rank) {
      const auto group =
          MakeProcessGroup(store, {.rank = rank,
                                   .size = 3,
                                   .backend = backend,
                                   .group = {.name = "group " + backend}});
      ASSERT_THAT(group, IsOk());
      EXPECT_EQ((*group)->backend(), backend.empty() ? "host" : backend);
      Tensor sum = Tensor::Full({2}, rank);
      ASSERT_THAT((*group)->AllReduce(sum), IsOk());
      EXPECT_EQ(sum.ToVector<float>(), std::vector<float>(2, 3));
    });
  }
}

// In a build without MPI, or in a job of one process.
TEST(MakeGroupTest, MpiSaysWhatItLacks) {
  store::HashStore store;
  const auto group = MakeProcessGroup(
      store,
      {.rank = 0, .size = 2, .backend = "mpi", .group = {.name = "job"}});
  EXPECT_THAT(
      group.status(),
      AnyOf(
          StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("--config=mpi")),
          StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mpirun"))));
}

// Without a GPU, or in a build without NCCL.
TEST(MakeGroupTest, NcclSaysWhatItLacks) {
  store::HashStore store;
  RunRanks(2, [&](int rank) {
    const auto group = MakeProcessGroup(store, {.rank = rank,
                                                .size = 2,
                                                .backend = "nccl",
                                                .nccl = {.device = 1000},
                                                .group = {.name = "devices"}});
    EXPECT_THAT(
        group.status(),
        AnyOf(StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("--config=cuda")),
              StatusIs(absl::StatusCode::kFailedPrecondition),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("rank "))));
  });
}

TEST(MakeGroupTest, AGroupOfOneNeedsNoOther) {
  store::HashStore store;
  const auto group = MakeProcessGroup(store, {});
  ASSERT_THAT(group, IsOk());
  EXPECT_EQ((*group)->backend(), "loopback");
  EXPECT_THAT((*group)->Barrier(), IsOk());
}

// Stands for a rank of another machine.
TEST(MakeGroupTest, RanksOfSeveralMachinesUseGloo) {
  store::HashStore store;
  v1::HostRank elsewhere;
  elsewhere.set_host("another machine");
  store::Barrier ranks(&store, "collectives/g/ranks", absl::Seconds(20));
  ASSERT_THAT(ranks.Arrive({.id = "1", .label = "rank 1"},
                           elsewhere.SerializeAsString()),
              IsOk());
  RunRanks(2, [&](int rank) {
    // Rank 1 replaces its record, so it begins once rank 0 has read it.
    if (rank == 1) {
      ASSERT_THAT(store.Get("collectives/g/ranks/done"), IsOk());
    }
    const auto group = MakeProcessGroup(
        store, {.rank = rank, .size = 2, .group = {.name = "g"}});
    ASSERT_THAT(group, IsOk());
    EXPECT_EQ((*group)->backend(), "gloo");
  });
}

TEST(MakeGroupTest, WrongOptionsAreRefused) {
  store::HashStore store;
  EXPECT_THAT(
      MakeProcessGroup(store, {.rank = 2, .size = 2}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no rank 2")));
  EXPECT_THAT(MakeProcessGroup(store, {.size = 2, .backend = "ucc"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no backend \"ucc\"")));
}

TEST(MakeGroupTest, AMissingRankIsNamed) {
  store::HashStore store;
  EXPECT_THAT(
      MakeProcessGroup(store, {.size = 2,
                               .backend = "host",
                               .start_timeout = absl::Milliseconds(50)}),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 1")));
}

}  // namespace
}  // namespace hawser::collectives
