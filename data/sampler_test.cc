// Properties of all samplers.

#include "data/sampler.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "data/distributed_sampler.h"
#include "data/elastic_distributed_sampler.h"
#include "data/random_sampler.h"
#include "data/sequential_sampler.h"
#include "data/weighted_random_sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr int64_t kCount = 23;

template <Sampler T>
void ExpectIndicesOfTheDataSet(const T& sampler) {
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const std::vector<int64_t> indices = sampler.Indices(epoch);
    EXPECT_THAT(indices, SizeIs(static_cast<size_t>(sampler.count())));
    EXPECT_THAT(indices, Each(AllOf(Ge(0), Lt(kCount))));
    EXPECT_EQ(indices, sampler.Indices(epoch));
  }
}

TEST(SamplerTest, IndicesAreFixedByTheEpochAndInRange) {
  ExpectIndicesOfTheDataSet(*SequentialSampler::Create(kCount));
  ExpectIndicesOfTheDataSet(*DistributedSampler::Create(
      {.dataset_count = kCount, .num_replicas = 4, .rank = 3}));
  ExpectIndicesOfTheDataSet(
      *ElasticDistributedSampler::Create({.dataset_count = kCount,
                                          .start_index = 6,
                                          .num_replicas = 4,
                                          .rank = 3}));
  for (const bool replacement : {false, true}) {
    ExpectIndicesOfTheDataSet(
        *RandomSampler::Create({.dataset_count = kCount,
                                .num_samples = 50,
                                .replacement = replacement}));
    ExpectIndicesOfTheDataSet(*WeightedRandomSampler::Create(
        {.weights = std::vector<double>(kCount, 0.5),
         .num_samples = 20,
         .replacement = replacement}));
  }
}

TEST(SequentialSamplerTest, EveryEpochIsInOrder) {
  EXPECT_THAT(SequentialSampler::Create(4)->Indices(0),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SequentialSampler::Create(4)->Indices(9),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SequentialSampler::Create(0)->Indices(0), ElementsAre());
}

TEST(SequentialSamplerTest, ANegativeCountIsRefused) {
  EXPECT_THAT(SequentialSampler::Create(-1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dataset_count is -1")));
}

}  // namespace
}  // namespace hawser::data
