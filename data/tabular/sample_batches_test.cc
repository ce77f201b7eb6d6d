#include "data/tabular/sample_batches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "data/tabular/samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Sample i has the label i, dense features i and -i, and the key 100 + i.
class CountingReader final : public SampleReader {
 public:
  explicit CountingReader(int64_t count) : count_(count) {}

  const SampleWidth& width() const override { return width_; }
  absl::StatusOr<bool> Next(Samples* samples) override {
    if (next_ == count_) return false;
    if (samples != nullptr) {
      const auto value = static_cast<float>(next_);
      samples->labels.push_back(value);
      samples->dense.insert(samples->dense.end(), {value, -value});
      samples->keys.push_back(100 + next_);
      samples->values.push_back(1);
      samples->ideal.push_back(value / 2);
    }
    ++next_;
    return true;
  }

 private:
  const SampleWidth width_ = {.dense = 2, .keys = 1};
  const int64_t count_;
  int64_t next_ = 0;
};

// The labels of each batch.
absl::StatusOr<std::vector<std::vector<float>>> Labels(
    int64_t count, const SampleBatchesOptions& options) {
  ASSIGN_OR_RETURN(
      SampleBatches batches,
      SampleBatches::Create(std::make_unique<CountingReader>(count), options));
  std::vector<std::vector<float>> labels;
  while (true) {
    ASSIGN_OR_RETURN(const auto batch, batches.Next());
    if (!batch.has_value()) return labels;
    labels.push_back(batch->labels.ToVector<float>());
  }
}

// The labels of all batches.
std::vector<float> AllLabels(int64_t count,
                             const SampleBatchesOptions& options) {
  std::vector<float> all;
  const auto batches = Labels(count, options);
  EXPECT_THAT(batches, IsOk());
  if (!batches.ok()) return all;
  for (const auto& batch : *batches) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(SampleBatchesTest, ColumnsOfABatch) {
  auto batches = SampleBatches::Create(std::make_unique<CountingReader>(3),
                                       {.batch_samples = 2});
  ASSERT_THAT(batches, IsOk());
  auto batch = batches->Next();
  ASSERT_THAT(batch, IsOk());
  EXPECT_EQ((*batch)->size(), 2);
  EXPECT_EQ((*batch)->labels.shape(), tensor::Shape({2, 1}));
  EXPECT_THAT((*batch)->labels.ToVector<float>(), ElementsAre(0, 1));
  EXPECT_EQ((*batch)->dense.shape(), tensor::Shape({2, 2}));
  EXPECT_THAT((*batch)->dense.ToVector<float>(), ElementsAre(0, -0.0, 1, -1));
  EXPECT_THAT((*batch)->keys.ToVector<int64_t>(), ElementsAre(100, 101));
  EXPECT_THAT((*batch)->values.ToVector<float>(), ElementsAre(1, 1));
  EXPECT_THAT((*batch)->ideal, ElementsAre(0, 0.5));
  batch = batches->Next();
  EXPECT_THAT((*batch)->keys.ToVector<int64_t>(), ElementsAre(102));
  EXPECT_FALSE((*batches->Next()).has_value());
  EXPECT_FALSE((*batches->Next()).has_value());
}

TEST(SampleBatchesTest, NoSamples) {
  EXPECT_THAT(Labels(0, {}), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Labels(2, {.num_replicas = 3}), IsOkAndHolds(IsEmpty()));
}

TEST(SampleBatchesTest, EveryNthSampleIsForTesting) {
  EXPECT_THAT(AllLabels(8, {.test_every = 3}), ElementsAre(0, 1, 3, 4, 6, 7));
  EXPECT_THAT(AllLabels(8, {.test_every = 3, .test = true}), ElementsAre(2, 5));
}

TEST(SampleBatchesTest, ReplicasGetEqualDisjointParts) {
  const SampleBatchesOptions first = {
      .test_every = 4, .num_replicas = 2, .rank = 0};
  SampleBatchesOptions second = first;
  second.rank = 1;
  // 0, 1, 2, 4, 5, 6, 8, 9, 10 without its last.
  EXPECT_THAT(AllLabels(11, first), ElementsAre(0, 2, 5, 8));
  EXPECT_THAT(AllLabels(11, second), ElementsAre(1, 4, 6, 9));
}

TEST(SampleBatchesTest, NumChosenIsTheNumberOfSamples) {
  for (const int64_t total : {0, 1, 9, 10, 11, 99}) {
    for (const int64_t test_every : {0, 1, 3, 10}) {
      for (const bool test : {false, true}) {
        for (const int64_t replicas : {1, 2, 4}) {
          const SampleBatchesOptions options = {.test_every = test_every,
                                                .test = test,
                                                .num_replicas = replicas,
                                                .rank = replicas - 1};
          EXPECT_EQ(static_cast<int64_t>(AllLabels(total, options).size()),
                    NumChosen(total, options))
              << total << " " << test_every << " " << test << " " << replicas;
        }
      }
    }
  }
}

TEST(SampleBatchesTest, ShufflesWithinItsMemory) {
  const SampleBatchesOptions options = {
      .batch_samples = 8, .shuffle_samples = 70, .seed = 5};
  const std::vector<float> labels = AllLabels(100, options);
  ASSERT_EQ(labels.size(), 100u);
  EXPECT_FALSE(std::is_sorted(labels.begin(), labels.end()));
  // 64 samples, whole batches, are shuffled at once.
  const std::set<float> first(labels.begin(), labels.begin() + 64);
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(*first.rbegin(), 63);
  const std::set<float> all(labels.begin(), labels.end());
  EXPECT_EQ(all.size(), 100u);

  EXPECT_EQ(AllLabels(100, options), labels);
  SampleBatchesOptions other = options;
  other.seed = 6;
  EXPECT_NE(AllLabels(100, other), labels);
}

TEST(SampleBatchesTest, OnlyTheLastBatchIsSmaller) {
  const auto batches = Labels(100, {.batch_samples = 8, .shuffle_samples = 20});
  ASSERT_THAT(batches, IsOk());
  ASSERT_EQ(batches->size(), 13u);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ((*batches)[i].size(), 8u);
  EXPECT_EQ(batches->back().size(), 4u);
}

TEST(SampleBatchesTest, OptionsOutOfRangeAreRefused) {
  for (const SampleBatchesOptions& options :
       {SampleBatchesOptions{.batch_samples = 0},
        SampleBatchesOptions{.shuffle_samples = 0},
        SampleBatchesOptions{.test_every = -1},
        SampleBatchesOptions{.num_replicas = 0},
        SampleBatchesOptions{.num_replicas = 2, .rank = 2},
        SampleBatchesOptions{.rank = -1}}) {
    EXPECT_THAT(Labels(1, options),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(SummarizeTest, ReadsAll) {
  CountingReader reader(17);
  const auto summary = Summarize(reader);
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->count, 17);
  EXPECT_EQ(summary->mean_label, 8);
  const auto empty = Summarize(reader);
  ASSERT_THAT(empty, IsOk());
  EXPECT_EQ(empty->count, 0);
  EXPECT_EQ(empty->mean_label, 0);
}

}  // namespace
}  // namespace hawser::data
