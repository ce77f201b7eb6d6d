#include "data/batch_sampler.h"

#include <numeric>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::vector<int64_t>> Batches(int64_t num_samples,
                                          int64_t batch_samples,
                                          bool drop_last) {
  const auto sampler = BatchSampler::Create(batch_samples, drop_last);
  EXPECT_THAT(sampler, IsOk());
  std::vector<int64_t> indices(static_cast<size_t>(num_samples));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < sampler->NumBatches(num_samples); ++i) {
    const auto batch = sampler->Batch(indices, i);
    batches.emplace_back(batch.begin(), batch.end());
  }
  return batches;
}

TEST(BatchSamplerTest, TheLastBatchIsSmaller) {
  EXPECT_THAT(Batches(10, 3, false),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5),
                          ElementsAre(6, 7, 8), ElementsAre(9)));
  EXPECT_THAT(Batches(2, 3, false), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(Batches(0, 3, false), ElementsAre());
}

TEST(BatchSamplerTest, DropLastLeavesItOut) {
  EXPECT_THAT(Batches(10, 3, true),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5),
                          ElementsAre(6, 7, 8)));
  EXPECT_THAT(Batches(2, 3, true), ElementsAre());
}

TEST(BatchSamplerTest, BatchesTogetherAreTheSamples) {
  for (int64_t n = 0; n <= 30; ++n) {
    for (int64_t size = 1; size <= 31; ++size) {
      for (const bool drop_last : {false, true}) {
        int64_t next = 0;
        const auto batches = Batches(n, size, drop_last);
        for (const auto& batch : batches) {
          ASSERT_FALSE(batch.empty());
          for (const int64_t index : batch) ASSERT_EQ(index, next++);
        }
        ASSERT_EQ(next, drop_last ? n - n % size : n);
      }
    }
  }
}

TEST(BatchSamplerTest, AnEmptyBatchIsRefused) {
  EXPECT_THAT(BatchSampler::Create(0, true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("batch_samples is 0")));
}

}  // namespace
}  // namespace hawser::data
