#include "data/tabular/sample_dataset.h"

#include <cstdint>
#include <vector>

#include "async/testing/status_matchers.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeReader final : public SampleReader {
 public:
  const SampleWidth& width() const override { return width_; }

  absl::StatusOr<bool> Next(Samples* samples) override {
    if (num_read_ == 3) return false;
    const auto i = static_cast<float>(num_read_++);
    samples->labels.push_back(i);
    samples->dense.insert(samples->dense.end(), {i + 10, i + 20});
    samples->keys.push_back(num_read_ + 29);
    samples->values.push_back(i + 40);
    samples->ideal.push_back(0.5f);
    return true;
  }

 private:
  const SampleWidth width_{.dense = 2, .keys = 1};
  int num_read_ = 0;
};

TEST(SampleDatasetTest, ABatchHasTheColumnsOfASampleBatch) {
  FakeReader reader;
  const auto dataset = ReadSampleDataset(reader);
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->count(), 3);
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{2, 0});
  ASSERT_THAT(batch, IsOk());
  ASSERT_EQ(batch->size(), 4u);
  EXPECT_EQ((*batch)[0].shape(), tensor::Shape({2, 1}));
  EXPECT_THAT((*batch)[0].ToVector<float>(), ElementsAre(2, 0));
  EXPECT_EQ((*batch)[1].shape(), tensor::Shape({2, 2}));
  EXPECT_THAT((*batch)[1].ToVector<float>(), ElementsAre(12, 22, 10, 20));
  EXPECT_EQ((*batch)[2].shape(), tensor::Shape({2, 1}));
  EXPECT_THAT((*batch)[2].ToVector<int64_t>(), ElementsAre(32, 30));
  EXPECT_THAT((*batch)[3].ToVector<float>(), ElementsAre(42, 40));
}

TEST(SampleDatasetTest, LibsvmSamplesAreAsWideAsTheLongestLine) {
  const auto dataset = ReadLibsvmDataset(
      WriteTextFile("wide.libsvm", "1 3:1 9:0.5\n# A comment.\n-1 7:2\n"));
  ASSERT_THAT(dataset, IsOk());
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{1, 0});
  ASSERT_THAT(batch, IsOk());
  EXPECT_THAT((*batch)[0].ToVector<float>(), ElementsAre(0, 1));
  EXPECT_EQ((*batch)[1].shape(), tensor::Shape({2, 0}));
  EXPECT_EQ((*batch)[2].shape(), tensor::Shape({2, 2}));
  EXPECT_THAT((*batch)[2].ToVector<int64_t>(), ElementsAre(7, 7, 3, 9));
  EXPECT_THAT((*batch)[3].ToVector<float>(), ElementsAre(2, 0, 1, 0.5));
}

TEST(SampleDatasetTest, BadLibsvmFilesAreNamedByLine) {
  EXPECT_THAT(ReadLibsvmDataset(WriteTextFile("bad.libsvm", "1 1:1\n0 1:x\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bad.libsvm:2: feature \"1:x\"")));
  EXPECT_THAT(ReadLibsvmDataset(testing::TempDir() + "/none.libsvm"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.libsvm")));
}

}  // namespace
}  // namespace hawser::data
