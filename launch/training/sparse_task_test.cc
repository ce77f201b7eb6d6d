#include "launch/training/sparse_task.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "data/tabular/sample_batches.h"
#include "data/tabular/samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/training/training_flags.h"
#include "ps/storage/table_spec.h"
#include "ps/training/sparse_model.h"
#include "tensor/tensor.h"

namespace hawser::launch {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `count` samples with labels 0, 1, ..., each with `num_keys` keys. Counts
// those that were read.
class Numbers final : public data::SampleReader {
 public:
  Numbers(int64_t count, int64_t num_keys, int64_t* num_read)
      : count_(count), width_({.keys = num_keys}), num_read_(num_read) {}

  const data::SampleWidth& width() const override { return width_; }
  absl::StatusOr<bool> Next(data::Samples* samples) override {
    if (next_ == count_) return false;
    ++*num_read_;
    if (samples != nullptr) {
      samples->labels.push_back(static_cast<float>(next_));
      for (int64_t i = 0; i < width_.keys; ++i) {
        samples->keys.push_back(i);
        samples->values.push_back(1);
      }
    }
    ++next_;
    return true;
  }

 private:
  const int64_t count_;
  const data::SampleWidth width_;
  int64_t* const num_read_;
  int64_t next_ = 0;
};

class OneTable final : public ps::SparseModel {
 public:
  explicit OneTable(int64_t width) : width_(width) {}

  std::vector<ps::TableSpec> tables() const override {
    return {{.name = "t", .width = width_}};
  }
  absl::StatusOr<std::vector<Tensor>> Keys(
      const data::SampleBatch& batch) const override {
    return std::vector<Tensor>{batch.keys};
  }
  absl::StatusOr<Tensor> Forward(const std::vector<Tensor>& rows,
                                 const data::SampleBatch&) const override {
    return rows[0];
  }
  absl::StatusOr<Tensor> Loss(const Tensor& predictions,
                              const std::vector<Tensor>&,
                              const data::SampleBatch&) const override {
    return predictions;
  }

 private:
  const int64_t width_;
};

class SparseTaskTest : public testing::Test {
 protected:
  SparseTaskTest() {
    task_.open_data = [this](const TrainingOptions&) {
      SparseData data;
      data.train = [this] { return Open(count_, num_keys_); };
      if (test_count_ >= 0) {
        data.test = [this] { return Open(test_count_, test_num_keys_); };
      }
      return data;
    };
    task_.make_model = [this](const TrainingOptions&, const data::SampleWidth&,
                              const data::SampleSummary& samples) {
      mean_label_ = samples.mean_label;
      return std::make_unique<OneTable>(table_width_);
    };
  }

  std::unique_ptr<data::SampleReader> Open(int64_t count, int64_t num_keys) {
    return std::make_unique<Numbers>(count, num_keys, &num_read_);
  }

  absl::StatusOr<LoadedTask> Load() {
    return LoadedTask::Load(task_, options_);
  }

  void ExpectRefused(const char* error) {
    EXPECT_THAT(Load(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)));
  }

  SparseTask task_;
  TrainingOptions options_ = {.num_trainers = 2, .test_every = 5};
  int64_t count_ = 11;
  int64_t num_keys_ = 2;
  int64_t test_count_ = -1;  // None.
  int64_t test_num_keys_ = 2;
  int64_t table_width_ = 1;
  int64_t num_read_ = 0;
  double mean_label_ = 0;
};

std::vector<float> Labels(absl::StatusOr<data::SampleBatches> batches) {
  std::vector<float> labels;
  while (true) {
    const auto batch = batches->Next();
    if (!batch.ok() || !batch->has_value()) return labels;
    const std::vector<float> more = (*batch)->labels.ToVector<float>();
    labels.insert(labels.end(), more.begin(), more.end());
  }
}

TEST_F(SparseTaskTest, SamplesForTestingAreSetApart) {
  const auto loaded = Load();
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(mean_label_, 5);
  // Without 4 and 9, and the last one, which has no partner.
  EXPECT_EQ(loaded->samples_per_epoch(2), 8);
  EXPECT_THAT(Labels(loaded->TrainingBatches(0, 0, 2)),
              ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(Labels(loaded->TrainingBatches(0, 1, 2)),
              ElementsAre(1, 3, 6, 8));
  EXPECT_THAT(Labels(loaded->TestBatches()), ElementsAre(4, 9));
}

TEST_F(SparseTaskTest, EpochsHaveOrdersOfTheirOwn) {
  count_ = 100;
  options_.shuffle_samples = 1000;
  const auto loaded = Load();
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(Labels(loaded->TrainingBatches(3, 0, 1)),
            Labels(loaded->TrainingBatches(3, 0, 1)));
  EXPECT_NE(Labels(loaded->TrainingBatches(3, 0, 1)),
            Labels(loaded->TrainingBatches(4, 0, 1)));
}

TEST_F(SparseTaskTest, WithTestDataAllSamplesAreForTraining) {
  test_count_ = 3;
  const auto loaded = Load();
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->samples_per_epoch(1), 11);
  EXPECT_THAT(Labels(loaded->TestBatches()), ElementsAre(0, 1, 2));
}

TEST_F(SparseTaskTest, KnownSamplesAreNotRead) {
  options_.samples = {.count = 11, .mean_label = 2.5};
  const auto loaded = Load();
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(num_read_, 0);
  EXPECT_EQ(mean_label_, 2.5);
  EXPECT_EQ(loaded->samples_per_epoch(2), 8);
}

TEST_F(SparseTaskTest, BadSamplesAndModelsAreRefused) {
  count_ = 1;
  ExpectRefused("there are 1 samples, too few to train with 2 trainers");
  count_ = 4;
  ExpectRefused("there are no samples for testing");
  count_ = 11;
  test_count_ = 0;
  ExpectRefused("there are no samples for testing");
  test_count_ = 1;
  test_num_keys_ = 3;
  ExpectRefused("have 0 numbers and 3 keys, those for training 0 and 2");
  test_num_keys_ = 2;
  table_width_ = 0;
  ExpectRefused("width");
  num_keys_ = 0;
  ExpectRefused("the samples have no keys to look up");
}

}  // namespace
}  // namespace hawser::launch
