#include "data/elastic_distributed_sampler.h"

#include <algorithm>
#include <set>
#include <utility>

#include "async/testing/status_matchers.h"
#include "data/distributed_sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<int64_t> Unshuffled(int64_t start_index, int64_t num_replicas,
                                int64_t rank) {
  return ElasticDistributedSampler::Create({.dataset_count = 10,
                                            .start_index = start_index,
                                            .num_replicas = num_replicas,
                                            .rank = rank,
                                            .shuffle = false})
      ->Indices(0);
}

// As PyTorch's sampler divides the samples from the start index on.
TEST(ElasticDistributedSamplerTest, TheRestIsPaddedFromItsOwnFront) {
  EXPECT_THAT(Unshuffled(3, 3, 0), ElementsAre(3, 6, 9));
  EXPECT_THAT(Unshuffled(3, 3, 1), ElementsAre(4, 7, 3));
  EXPECT_THAT(Unshuffled(3, 3, 2), ElementsAre(5, 8, 4));
  EXPECT_THAT(Unshuffled(9, 3, 2), ElementsAre(9));
  EXPECT_THAT(Unshuffled(10, 3, 2), ElementsAre());
}

TEST(ElasticDistributedSamplerTest, FromTheStartItIsADistributedSampler) {
  for (const bool shuffle : {false, true}) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      const auto elastic =
          ElasticDistributedSampler::Create({.dataset_count = 30,
                                             .num_replicas = 4,
                                             .rank = rank,
                                             .shuffle = shuffle,
                                             .seed = 6});
      const auto plain = DistributedSampler::Create({.dataset_count = 30,
                                                     .num_replicas = 4,
                                                     .rank = rank,
                                                     .shuffle = shuffle,
                                                     .seed = 6});
      EXPECT_EQ(elastic->count(), plain->count());
      EXPECT_EQ(elastic->Indices(2), plain->Indices(2));
    }
  }
}

// Appends the samples that the trainers visit in `steps` steps of an epoch, and
// returns where the next job begins.
int64_t RunJob(ElasticDistributedSamplerOptions options, int64_t steps,
               std::vector<int64_t>& visited) {
  int64_t next = 0;
  std::vector<std::vector<int64_t>> parts;
  for (options.rank = 0; options.rank < options.num_replicas; ++options.rank) {
    const auto sampler = ElasticDistributedSampler::Create(options);
    EXPECT_THAT(sampler, IsOk());
    parts.push_back(sampler->Indices(3));
    EXPECT_EQ(static_cast<int64_t>(parts.back().size()), sampler->count());
    steps = std::min(steps, sampler->count());
    next = sampler->NextStartIndex(steps);
  }
  for (int64_t step = 0; step < steps; ++step) {
    for (const auto& part : parts) {
      visited.push_back(part[static_cast<size_t>(step)]);
    }
  }
  return next;
}

TEST(ElasticDistributedSamplerTest, RestartsWithOtherTrainersLoseNoSample) {
  for (const bool shuffle : {false, true}) {
    for (const int64_t n : {1, 7, 24, 61}) {
      for (int64_t before = 1; before <= 9; ++before) {
        for (int64_t between = 1; between <= 9; ++between) {
          for (int64_t after = 1; after <= 9; after += 2) {
            ElasticDistributedSamplerOptions options{
                .dataset_count = n, .shuffle = shuffle, .seed = 8};
            std::vector<int64_t> visited;
            for (const auto& [trainers, steps] :
                 {std::pair{before, int64_t{3}}, {between, 1}, {after, n}}) {
              options.num_replicas = trainers;
              options.start_index = RunJob(options, steps, visited);
            }
            ASSERT_EQ(options.start_index, n);
            // Each sample once, and then less than one step of padding.
            const auto size = static_cast<int64_t>(visited.size());
            ASSERT_GE(size, n);
            ASSERT_LT(size - n, std::max({before, between, after}));
            ASSERT_EQ(
                std::set<int64_t>(visited.begin(), visited.begin() + n).size(),
                static_cast<size_t>(n))
                << n << " samples, trainers " << before << ", " << between
                << ", " << after;
          }
        }
      }
    }
  }
}

TEST(ElasticDistributedSamplerTest, TheRestIsShuffledByEpoch) {
  const auto sampler = ElasticDistributedSampler::Create(
      {.dataset_count = 100, .start_index = 50});
  ASSERT_THAT(sampler, IsOk());
  EXPECT_EQ(sampler->Indices(1), sampler->Indices(1));
  EXPECT_NE(sampler->Indices(1), sampler->Indices(2));
}

TEST(ElasticDistributedSamplerTest, BadOptionsAreRefused) {
  EXPECT_THAT(
      ElasticDistributedSampler::Create({.dataset_count = 4, .start_index = 5}),
      StatusIs(kInvalid, HasSubstr("start_index 5 is not in 0 to 4")));
  EXPECT_THAT(ElasticDistributedSampler::Create(
                  {.dataset_count = 4, .start_index = -1}),
              StatusIs(kInvalid, HasSubstr("start_index -1")));
  EXPECT_THAT(ElasticDistributedSampler::Create({.dataset_count = -1}),
              StatusIs(kInvalid, HasSubstr("dataset_count is -1")));
  EXPECT_THAT(ElasticDistributedSampler::Create(
                  {.dataset_count = 4, .num_replicas = 2, .rank = 2}),
              StatusIs(kInvalid, HasSubstr("rank 2")));
}

}  // namespace
}  // namespace hawser::data
