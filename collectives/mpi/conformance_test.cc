// The conformance suite in one process of an MPI job, which runs the tests of
// groups of its size, and tests of the backend alone.
#include "collectives/testing/conformance.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/mpi/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/file/store.h"
#include "store/hash/store.h"

namespace hawser::collectives {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// A store that the processes share in this test.
std::unique_ptr<store::Store> OpenStore(int size) {
  static int number = 0;
  const char* const directory = std::getenv("HAWSER_MPI_TEST_DIR");
  auto store = store::FileStore::Open(
      {.path = absl::StrCat(directory, "/", ++number), .num_members = size});
  EXPECT_THAT(store, IsOk());
  return *std::move(store);
}

std::vector<std::unique_ptr<Backend>> MakeMpiBackends(int size) {
  const absl::StatusOr<MpiProcess> self = GetMpiProcess();
  EXPECT_THAT(self, IsOk());
  EXPECT_EQ(self->size, size);
  std::vector<std::unique_ptr<Backend>> backends(static_cast<size_t>(size));
  auto backend =
      MakeMpiBackend(*OpenStore(size), self->rank, size, absl::Seconds(60));
  EXPECT_THAT(backend, IsOk());
  backends[static_cast<size_t>(self->rank)] = *std::move(backend);
  return backends;
}

// In jobs of one process.
TEST(MpiBackendTest, GroupsLargerThanTheJobAreRefused) {
  store::HashStore store;
  EXPECT_THAT(MakeMpiBackend(store, 1, 2, absl::Seconds(1)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("start it with mpirun")));
}

// In jobs of three processes.
TEST(MpiSubgroupTest, RanksInAnotherOrder) {
  const absl::StatusOr<MpiProcess> self = GetMpiProcess();
  ASSERT_THAT(self, IsOk());
  ASSERT_EQ(self->size, 3);
  const auto store = OpenStore(3);
  if (self->rank == 1) return;
  const int rank = self->rank == 2 ? 0 : 1;
  auto backend = MakeMpiBackend(*store, rank, 2, absl::Seconds(60));
  ASSERT_THAT(backend, IsOk());
  ProcessGroup group(*std::move(backend), rank, 2);
  Tensor data = Tensor::Full({3}, self->rank);
  ASSERT_THAT(group.Broadcast(data, 0), IsOk());
  EXPECT_EQ(data.ToVector<float>(), std::vector<float>(3, 2));
}

TEST(MpiSubgroupTest, RanksThatDoNotJoinAreNamed) {
  const absl::StatusOr<MpiProcess> self = GetMpiProcess();
  ASSERT_THAT(self, IsOk());
  store::HashStore alone;
  EXPECT_THAT(
      MakeMpiBackend(alone, self->rank, 3, absl::Milliseconds(20)).status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("not joined")));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Mpi, ConformanceTest,
                         testing::ValuesIn(ConformanceParams(MakeMpiBackends)),
                         ConformanceName);

}  // namespace hawser::collectives
