#include "data/distributed_sampler.h"

#include <algorithm>
#include <set>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Unshuffled(int64_t n, int64_t w, int64_t rank,
                                bool drop_last) {
  return DistributedSampler::Create({.dataset_count = n,
                                     .num_replicas = w,
                                     .rank = rank,
                                     .shuffle = false,
                                     .drop_last = drop_last})
      ->Indices(0);
}

// Expected indices observed with PyTorch 1.13's DistributedSampler.
TEST(DistributedSamplerTest, UnevenDataSetIsPaddedFromItsFront) {
  EXPECT_THAT(Unshuffled(10, 4, 0, false), ElementsAre(0, 4, 8));
  EXPECT_THAT(Unshuffled(10, 4, 1, false), ElementsAre(1, 5, 9));
  EXPECT_THAT(Unshuffled(10, 4, 2, false), ElementsAre(2, 6, 0));
  EXPECT_THAT(Unshuffled(10, 4, 3, false), ElementsAre(3, 7, 1));
}

TEST(DistributedSamplerTest, DropLastCutsToAMultiple) {
  EXPECT_THAT(Unshuffled(10, 4, 0, true), ElementsAre(0, 4));
  EXPECT_THAT(Unshuffled(10, 4, 1, true), ElementsAre(1, 5));
  EXPECT_THAT(Unshuffled(10, 4, 2, true), ElementsAre(2, 6));
  EXPECT_THAT(Unshuffled(10, 4, 3, true), ElementsAre(3, 7));
  EXPECT_THAT(Unshuffled(3, 4, 0, true), ElementsAre());
}

TEST(DistributedSamplerTest, FewerSamplesThanTrainersRepeats) {
  EXPECT_THAT(Unshuffled(2, 4, 0, false), ElementsAre(0));
  EXPECT_THAT(Unshuffled(2, 4, 1, false), ElementsAre(1));
  EXPECT_THAT(Unshuffled(2, 4, 2, false), ElementsAre(0));
  EXPECT_THAT(Unshuffled(2, 4, 3, false), ElementsAre(1));
}

TEST(DistributedSamplerTest, ShuffledTrainersTogetherSeeEverySampleOnce) {
  std::multiset<int64_t> seen;
  for (int64_t rank = 0; rank < 3; ++rank) {
    auto sampler = DistributedSampler::Create(
        {.dataset_count = 99, .num_replicas = 3, .rank = rank, .seed = 5});
    ASSERT_THAT(sampler, IsOk());
    for (int64_t i : sampler->Indices(7)) seen.insert(i);
  }
  ASSERT_EQ(seen.size(), 99u);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 99u);
}

TEST(DistributedSamplerTest, OrderDependsOnEpochAndSeedAlone) {
  auto indices = [](uint64_t seed, int64_t epoch) {
    return DistributedSampler::Create({.dataset_count = 50, .seed = seed})
        ->Indices(epoch);
  };
  EXPECT_EQ(indices(1, 3), indices(1, 3));
  EXPECT_NE(indices(1, 3), indices(1, 4));
  EXPECT_NE(indices(1, 3), indices(2, 3));
}

// The order that all trainers together visit, in step.
std::vector<int64_t> InStep(int64_t n, int64_t w, int64_t epoch) {
  std::vector<int64_t> order;
  for (int64_t rank = 0; rank < w; ++rank) {
    const auto indices =
        DistributedSampler::Create(
            {.dataset_count = n, .num_replicas = w, .rank = rank, .seed = 5})
            ->Indices(epoch);
    order.resize(indices.size() * static_cast<size_t>(w));
    for (size_t i = 0; i < indices.size(); ++i) {
      order[i * static_cast<size_t>(w) + static_cast<size_t>(rank)] =
          indices[i];
    }
  }
  return order;
}

TEST(DistributedSamplerTest, TrainersOfEveryNumberShareOneShuffledOrder) {
  for (const int64_t n : {1, 2, 3, 10, 64, 97}) {
    const std::vector<int64_t> alone = InStep(n, 1, 4);
    for (int64_t w = 2; w <= 12; ++w) {
      const std::vector<int64_t> together = InStep(n, w, 4);
      for (size_t i = 0; i < together.size(); ++i) {
        ASSERT_EQ(together[i], alone[i % alone.size()])
            << n << " samples, " << w << " trainers";
      }
    }
  }
}

TEST(DistributedSamplerTest, BadOptionsAreRefused) {
  EXPECT_THAT(DistributedSampler::Create(
                  {.dataset_count = 4, .num_replicas = 2, .rank = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rank 2 is not in 0 to 1")));
  EXPECT_THAT(
      DistributedSampler::Create({.dataset_count = 4, .num_replicas = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("num_replicas")));
  EXPECT_THAT(
      DistributedSampler::Create({.dataset_count = -1}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dataset_count")));
}

}  // namespace
}  // namespace hawser::data
