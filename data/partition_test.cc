#include "data/partition.h"

#include <numeric>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<int64_t> Natural(int64_t total) {
  std::vector<int64_t> list(static_cast<size_t>(total));
  std::iota(list.begin(), list.end(), int64_t{0});
  return list;
}

// The order in which the trainers together visit the list, in step.
std::vector<int64_t> InStep(int64_t total, int64_t num_replicas,
                            bool drop_last) {
  const std::vector<int64_t> list = Natural(total);
  std::vector<int64_t> visited;
  for (int64_t rank = 0; rank < num_replicas; ++rank) {
    const Partition partition{num_replicas, rank, drop_last};
    const std::vector<int64_t> part = partition.Of(list);
    EXPECT_EQ(static_cast<int64_t>(part.size()), partition.Count(total));
    visited.resize(part.size() * static_cast<size_t>(num_replicas));
    for (size_t i = 0; i < part.size(); ++i) {
      visited[i * static_cast<size_t>(num_replicas) +
              static_cast<size_t>(rank)] = part[i];
    }
  }
  return visited;
}

TEST(PartitionTest, PaddedPartsTogetherAreTheListRepeatedFromItsFront) {
  for (int64_t total = 1; total <= 40; ++total) {
    for (int64_t num_replicas = 1; num_replicas <= 45; ++num_replicas) {
      const std::vector<int64_t> visited = InStep(total, num_replicas, false);
      // The least multiple of the trainers that has all samples.
      const auto size = static_cast<int64_t>(visited.size());
      ASSERT_GE(size, total);
      ASSERT_LT(size - num_replicas, total);
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(visited[static_cast<size_t>(i)], i % total)
            << total << " samples, " << num_replicas << " trainers";
      }
    }
  }
}

TEST(PartitionTest, CutPartsTogetherAreTheFrontOfTheList) {
  for (int64_t total = 0; total <= 40; ++total) {
    for (int64_t num_replicas = 1; num_replicas <= 45; ++num_replicas) {
      const std::vector<int64_t> visited = InStep(total, num_replicas, true);
      const auto size = static_cast<int64_t>(visited.size());
      ASSERT_GT(size + num_replicas, total);
      ASSERT_LE(size, total);
      ASSERT_EQ(visited, Natural(size));
    }
  }
}

TEST(PartitionTest, AnEmptyListHasEmptyParts) {
  EXPECT_EQ((Partition{3, 2, false}.Count(0)), 0);
  EXPECT_TRUE((Partition{3, 2, false}.Of({}).empty()));
}

TEST(PartitionTest, BadRanksAreRefused) {
  EXPECT_THAT((Partition{3, 2, false}.Validate()), IsOk());
  EXPECT_THAT((Partition{0, 0, false}.Validate()),
              StatusIs(kInvalid, HasSubstr("num_replicas is 0")));
  EXPECT_THAT((Partition{3, 3, false}.Validate()),
              StatusIs(kInvalid, HasSubstr("rank 3 is not in 0 to 2")));
  EXPECT_THAT((Partition{3, -1, false}.Validate()),
              StatusIs(kInvalid, HasSubstr("rank -1")));
}

}  // namespace
}  // namespace hawser::data
