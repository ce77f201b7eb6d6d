// The examples of docs/data.md, and a check that the page has them as here.

#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "data/distributed_sampler.h"
#include "data/elastic_distributed_sampler.h"
#include "data/loader.h"
#include "data/npy_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/io/npy.h"
#include "tensor/tensor.h"

namespace hawser {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Step =
    std::function<absl::Status(const Tensor& images, const Tensor& labels)>;

absl::Status Train(const std::string& directory, int64_t trainer,
                   int64_t num_trainers, async::ThreadPool& pool,
                   const Step& step) {
  ASSIGN_OR_RETURN(const auto dataset,
                   data::NpyDataset::Open(
                       {directory + "/images.npy", directory + "/labels.npy"}));
  ASSIGN_OR_RETURN(const auto sampler, data::DistributedSampler::Create(
                                           {.dataset_count = dataset->count(),
                                            .num_replicas = num_trainers,
                                            .rank = trainer}));
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    ASSIGN_OR_RETURN(data::Loader loader,
                     data::Loader::Start(dataset, sampler.Indices(epoch),
                                         {.batch_samples = 32}, &pool));
    while (true) {
      ASSIGN_OR_RETURN(const auto batch, loader.Next());
      if (!batch.has_value()) break;
      RETURN_IF_ERROR(step((*batch)[0], (*batch)[1]));
    }
  }
  return absl::OkStatus();
}

// Trainer `rank` of `num_trainers` goes on with an epoch of which all
// trainers together visited the first `start_index` samples.
absl::StatusOr<int64_t> Resume(int64_t start_index, int64_t num_trainers,
                               int64_t rank, int64_t visited) {
  ASSIGN_OR_RETURN(const auto sampler, data::ElasticDistributedSampler::Create(
                                           {.dataset_count = 1000,
                                            .start_index = start_index,
                                            .num_replicas = num_trainers,
                                            .rank = rank}));
  // ... `visited` samples later, for the next checkpoint:
  return sampler.NextStartIndex(visited);
}

TEST(DataDocsTest, TrainersTogetherSeeEachSampleInEachEpoch) {
  const std::string directory = testing::TempDir();
  ASSERT_THAT(tensor::WriteNpy(directory + "/images.npy",
                               *Tensor::Arange(400).Reshape({100, 2, 2})),
              IsOk());
  ASSERT_THAT(
      tensor::WriteNpy(directory + "/labels.npy",
                       Tensor::Arange(100, {.dtype = tensor::DType::kI64})),
      IsOk());
  async::ThreadPool pool({.num_threads = 2});
  std::vector<int> times(100);
  for (int64_t trainer = 0; trainer < 2; ++trainer) {
    ASSERT_THAT(Train(directory, trainer, 2, pool,
                      [&](const Tensor& images, const Tensor& labels) {
                        const auto pixels = images.ToVector<float>();
                        const auto classes = labels.ToVector<int64_t>();
                        for (size_t i = 0; i < classes.size(); ++i) {
                          EXPECT_EQ(pixels[4 * i],
                                    static_cast<float>(4 * classes[i]));
                          ++times[static_cast<size_t>(classes[i])];
                        }
                        return absl::OkStatus();
                      }),
                IsOk());
  }
  EXPECT_THAT(times, ::testing::Each(3));
}

TEST(DataDocsTest, AnEpochIsResumed) {
  EXPECT_THAT(Resume(96, 3, 1, 64), IsOkAndHolds(96 + 3 * 64));
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(DataDocsTest, ThePageHasTheExamplesOfThisFile) {
  const std::string source = ReadFile("data/data_docs_test.cc");
  const std::string page = ReadFile("docs/data.md");
  const std::string fence = "```cpp\n";
  std::vector<std::string> examples;
  for (size_t at = page.find(fence); at != std::string::npos;
       at = page.find(fence, at)) {
    at += fence.size();
    examples.push_back(page.substr(at, page.find("```\n", at) - at));
  }
  EXPECT_THAT(examples, SizeIs(2));
  for (const std::string& example : examples) {
    EXPECT_THAT(source, HasSubstr(example));
  }
}

}  // namespace
}  // namespace hawser
