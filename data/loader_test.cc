#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "async/status_macros.h"
#include "async/testing/manual_executor.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "data/random_sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Fetcher = std::function<absl::Status(std::span<const int64_t>)>;

// Samples that are their own index, in one tensor. `before` runs in each fetch,
// whose error it may return.
class IndexDataset final : public Dataset {
 public:
  explicit IndexDataset(Fetcher before = nullptr)
      : before_(std::move(before)) {}

  int64_t count() const override { return 1000; }

  absl::StatusOr<std::vector<Tensor>> Fetch(
      std::span<const int64_t> indices) const override {
    ++num_fetches_;
    RETURN_IF_ERROR(CheckIndices(indices, count()));
    if (before_ != nullptr) RETURN_IF_ERROR(before_(indices));
    return std::vector<Tensor>{
        Tensor::FromVector(indices, {static_cast<int64_t>(indices.size())})};
  }

  int num_fetches() const { return num_fetches_; }

 private:
  const Fetcher before_;
  mutable std::atomic<int> num_fetches_ = 0;
};

std::vector<int64_t> FirstIndices(int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

// The samples of the next batch.
absl::StatusOr<std::vector<int64_t>> NextSamples(Loader& loader) {
  ASSIGN_OR_RETURN(const auto batch, loader.Next());
  if (!batch.has_value()) return absl::OutOfRangeError("the epoch has ended");
  EXPECT_EQ(batch->size(), 1u);
  return (*batch)[0].ToVector<int64_t>();
}

// All batches of an epoch.
std::vector<std::vector<int64_t>> AllBatches(Loader loader) {
  std::vector<std::vector<int64_t>> batches;
  while (true) {
    const auto samples = NextSamples(loader);
    if (!samples.ok()) {
      EXPECT_THAT(samples, StatusIs(absl::StatusCode::kOutOfRange,
                                    HasSubstr("epoch has ended")));
      EXPECT_EQ(static_cast<int64_t>(batches.size()), loader.num_batches());
      return batches;
    }
    batches.push_back(*samples);
  }
}

MATCHER_P(HoldsSamples, matcher, "") {
  return arg.ok() &&
         ::testing::ExplainMatchResult(matcher, *arg, result_listener);
}

TEST(LoaderTest, BatchesFollowTheOrderOfTheIndices) {
  async::ThreadPool pool({});
  const auto dataset = std::make_shared<IndexDataset>();
  auto loader =
      Loader::Start(dataset, {5, 3, 9, 3, 0}, {.batch_samples = 2}, &pool);
  ASSERT_THAT(loader, IsOk());
  EXPECT_EQ(loader->num_batches(), 3);
  EXPECT_THAT(NextSamples(*loader), HoldsSamples(ElementsAre(5, 3)));
  EXPECT_THAT(NextSamples(*loader), HoldsSamples(ElementsAre(9, 3)));
  EXPECT_THAT(NextSamples(*loader), HoldsSamples(ElementsAre(0)));
  for (int i = 0; i < 2; ++i) {
    const auto end = loader->Next();
    ASSERT_THAT(end, IsOk());
    EXPECT_FALSE(end->has_value());
  }
}

TEST(LoaderTest, DropLastLeavesOutThePartialBatch) {
  async::ThreadPool pool({});
  EXPECT_THAT(AllBatches(*Loader::Start(
                  std::make_shared<IndexDataset>(), FirstIndices(5),
                  {.batch_samples = 2, .drop_last = true}, &pool)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(LoaderTest, WithoutIndicesThereAreNoBatches) {
  async::ThreadPool pool({});
  EXPECT_THAT(AllBatches(*Loader::Start(std::make_shared<IndexDataset>(), {},
                                        {}, &pool)),
              ElementsAre());
}

// The first batch is done only after the second, so both are fetched at once.
TEST(LoaderTest, ABatchThatIsDoneEarlierWaitsForItsTurn) {
  absl::Notification second_done;
  const auto dataset =
      std::make_shared<IndexDataset>([&](std::span<const int64_t> indices) {
        if (indices[0] == 0) second_done.WaitForNotification();
        if (indices[0] == 1) second_done.Notify();
        return absl::OkStatus();
      });
  async::ThreadPool pool({.num_threads = 2});
  EXPECT_THAT(AllBatches(*Loader::Start(dataset, FirstIndices(3), {}, &pool)),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(LoaderTest, BatchesDoNotDependOnTheThreads) {
  const std::vector<int64_t> indices =
      RandomSampler::Create({.dataset_count = 500, .seed = 4})->Indices(1);
  for (const int threads : {1, 2, 8}) {
    for (const int64_t batches_ahead : {1, 2, 7, 1000}) {
      async::ThreadPool pool({.num_threads = threads});
      const auto batches = AllBatches(*Loader::Start(
          std::make_shared<IndexDataset>(), indices,
          {.batch_samples = 7, .batches_ahead = batches_ahead}, &pool));
      std::vector<int64_t> samples;
      for (const auto& batch : batches) {
        samples.insert(samples.end(), batch.begin(), batch.end());
      }
      EXPECT_EQ(samples, indices);
    }
  }
}

TEST(LoaderTest, ASlowCallerBoundsTheBatchesAhead) {
  async::ManualExecutor executor;
  const auto dataset = std::make_shared<IndexDataset>();
  auto loader =
      Loader::Start(dataset, FirstIndices(8), {.batches_ahead = 3}, &executor);
  ASSERT_THAT(loader, IsOk());
  for (int returned = 0; returned < 8; ++returned) {
    executor.RunAll();
    EXPECT_EQ(dataset->num_fetches(), std::min(returned + 3, 8));
    EXPECT_THAT(NextSamples(*loader), HoldsSamples(ElementsAre(returned)));
  }
  EXPECT_EQ(executor.num_queued(), 0u);
}

TEST(LoaderTest, NextMayRunOnTheOnlyThreadOfThePool) {
  async::ThreadPool pool({.num_threads = 1});
  std::vector<std::vector<int64_t>> batches;
  pool.Post([&] {
    batches = AllBatches(*Loader::Start(std::make_shared<IndexDataset>(),
                                        FirstIndices(3), {}, &pool));
  });
  pool.Shutdown();
  EXPECT_EQ(batches.size(), 3u);
}

Fetcher FailAt(int64_t bad) {
  return [bad](std::span<const int64_t> indices) -> absl::Status {
    for (const int64_t index : indices) {
      if (index == bad) return absl::DataLossError("x.npy ends at byte 12");
    }
    return absl::OkStatus();
  };
}

TEST(LoaderTest, AnErrorTakesThePlaceOfItsBatchAndNamesTheSample) {
  async::ThreadPool pool({});
  auto loader =
      Loader::Start(std::make_shared<IndexDataset>(FailAt(7)),
                    {1, 2, 3, 4, 7, 8, 5, 6}, {.batch_samples = 3}, &pool);
  ASSERT_THAT(loader, IsOk());
  EXPECT_THAT(NextSamples(*loader), HoldsSamples(ElementsAre(1, 2, 3)));
  EXPECT_THAT(loader->Next(),
              StatusIs(absl::StatusCode::kDataLoss,
                       "batch 1, sample 7: x.npy ends at byte 12"));
  EXPECT_THAT(NextSamples(*loader), HoldsSamples(ElementsAre(5, 6)));
}

TEST(LoaderTest, ABatchOfOneSampleIsFetchedOnce) {
  async::ThreadPool pool({});
  const auto dataset = std::make_shared<IndexDataset>(FailAt(7));
  auto loader = Loader::Start(dataset, {7}, {}, &pool);
  EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kDataLoss,
                                       HasSubstr("batch 0, sample 7: x.npy")));
  EXPECT_EQ(dataset->num_fetches(), 1);
}

TEST(LoaderTest, AnIndexThatTheDataSetLacksIsNamed) {
  async::ThreadPool pool({});
  auto loader = Loader::Start(std::make_shared<IndexDataset>(), {1, 1000, 2},
                              {.batch_samples = 3}, &pool);
  EXPECT_THAT(loader->Next(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("batch 0, sample 1000: "),
                             HasSubstr("a data set of 1000"))));
}

TEST(LoaderTest, AnErrorOfTheWholeBatchNamesNoSample) {
  async::ThreadPool pool({});
  const auto dataset = std::make_shared<IndexDataset>(
      [](std::span<const int64_t> indices) -> absl::Status {
        if (indices.size() == 1) return absl::OkStatus();
        return absl::ResourceExhaustedError("out of memory");
      });
  auto loader = Loader::Start(dataset, {1, 2}, {.batch_samples = 2}, &pool);
  EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kResourceExhausted,
                                       "batch 0: out of memory"));
}

TEST(LoaderTest, AnExceptionIsAnErrorOfItsSample) {
  async::ThreadPool pool({});
  const auto dataset = std::make_shared<IndexDataset>(
      [](std::span<const int64_t> indices) -> absl::Status {
        if (indices.back() == 2) throw std::runtime_error("bad picture");
        return absl::OkStatus();
      });
  auto loader = Loader::Start(dataset, {1, 2}, {.batch_samples = 2}, &pool);
  EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kInternal,
                                       AllOf(HasSubstr("batch 0, sample 2: "),
                                             HasSubstr("bad picture"))));
}

class FixedDataset final : public Dataset {
 public:
  explicit FixedDataset(Tensor tensor) : tensor_(std::move(tensor)) {}
  int64_t count() const override { return 10; }
  absl::StatusOr<std::vector<Tensor>> Fetch(
      std::span<const int64_t>) const override {
    return std::vector<Tensor>{tensor_};
  }

 private:
  const Tensor tensor_;
};

TEST(LoaderTest, TensorsWithoutARowForEachSampleAreRefused) {
  async::ThreadPool pool({});
  for (const Tensor& tensor :
       {Tensor(), Tensor::Ones({}), Tensor::Ones({3, 2})}) {
    auto loader = Loader::Start(std::make_shared<FixedDataset>(tensor), {1, 2},
                                {.batch_samples = 2}, &pool);
    EXPECT_THAT(loader->Next(),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("without a row for each of")));
  }
}

TEST(LoaderTest, BatchesOfAnExecutorThatWasShutDownAreCancelled) {
  async::ThreadPool pool({});
  pool.Shutdown();
  auto loader = Loader::Start(std::make_shared<IndexDataset>(), FirstIndices(2),
                              {}, &pool);
  EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(LoaderTest, FetchesQueuedWhenItIsDestroyedDoNotRun) {
  async::ManualExecutor executor;
  const auto dataset = std::make_shared<IndexDataset>();
  {
    auto loader = Loader::Start(dataset, FirstIndices(9), {}, &executor);
    ASSERT_THAT(loader, IsOk());
    ASSERT_TRUE(executor.RunOne());
    EXPECT_THAT(NextSamples(*loader), HoldsSamples(ElementsAre(0)));
  }
  EXPECT_EQ(executor.RunAll(), 4u);
  EXPECT_EQ(dataset->num_fetches(), 1);
}

TEST(LoaderTest, DestructionWaitsForFetchesThatRun) {
  absl::Notification fetching, release;
  std::atomic<int> num_running = 0;
  const auto dataset = std::make_shared<IndexDataset>(
      [&](std::span<const int64_t>) -> absl::Status {
        ++num_running;
        fetching.Notify();
        release.WaitForNotification();
        --num_running;
        return absl::DataLossError("bad");
      });
  async::ThreadPool pool({.num_threads = 1});
  async::ThreadPool destroyer({.num_threads = 1});
  auto started =
      Loader::Start(dataset, FirstIndices(90), {.batch_samples = 3}, &pool);
  ASSERT_THAT(started, IsOk());
  fetching.WaitForNotification();
  std::atomic<bool> destroyed = false;
  destroyer.Post(
      [&, loader = std::make_unique<Loader>(*std::move(started))]() mutable {
        loader.reset();
        EXPECT_EQ(num_running, 0);
        destroyed = true;
      });
  // Until the destructor waits.
  while (!destroyed && destroyer.stats().num_blocked == 0) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(destroyed);
  release.Notify();
  destroyer.Shutdown();
  pool.Shutdown();
  // Neither other batches nor the samples of the failed one were fetched.
  EXPECT_EQ(dataset->num_fetches(), 1);
}

TEST(LoaderTest, LoadersShareADataSetAndAPool) {
  async::ThreadPool pool({.num_threads = 2});
  const auto dataset = std::make_shared<IndexDataset>();
  std::vector<Loader> loaders;
  for (int64_t i = 0; i < 3; ++i) {
    loaders.push_back(*Loader::Start(dataset, {i, i + 1}, {}, &pool));
  }
  for (int64_t i = 2; i >= 0; --i) {
    EXPECT_THAT(AllBatches(std::move(loaders[static_cast<size_t>(i)])),
                ElementsAre(ElementsAre(i), ElementsAre(i + 1)));
  }
}

TEST(LoaderTest, BadOptionsAreRefused) {
  async::ManualExecutor executor;
  const auto start = [&](std::shared_ptr<const Dataset> dataset,
                         const LoaderOptions& options) {
    return Loader::Start(std::move(dataset), {1}, options, &executor).status();
  };
  const auto refused = [](const char* why) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  };
  const auto dataset = std::make_shared<IndexDataset>();
  EXPECT_THAT(start(nullptr, {}), refused("data set"));
  EXPECT_THAT(start(dataset, {.batch_samples = 0}),
              refused("batch_samples is 0"));
  EXPECT_THAT(start(dataset, {.batches_ahead = 0}),
              refused("batches_ahead is 0"));
  EXPECT_EQ(executor.num_queued(), 0u);
}

}  // namespace
}  // namespace hawser::data
