#include "launch/job/training_loop.h"

#include <cstdint>
#include <cstdio>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "telemetry/progress_line.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;

TEST(TrainingLoopTest, TrainersShareTheSamplesOfEachEpoch) {
  std::vector<std::set<int64_t>> seen(2);
  std::vector<double> rates;
  for (int trainer = 0; trainer < 2; ++trainer) {
    TrainingLoop loop{.dataset_samples = 20,
                      .num_epochs = 2,
                      .batch_samples = 4,
                      .seed = 5,
                      .trainer = trainer,
                      .num_trainers = 2,
                      .learning_rate = 8};
    loop.schedule = [](double base, int64_t epoch) {
      return base / static_cast<double>(1 + epoch);
    };
    std::vector<int64_t> batch;
    loop.load = [&](std::span<const int64_t> samples) {
      batch.assign(samples.begin(), samples.end());
      return absl::OkStatus();
    };
    size_t step = 0;
    loop.step = [&](double learning_rate) -> absl::StatusOr<double> {
      // 4, 4 and 2 samples per epoch.
      EXPECT_EQ(batch.size(), step % 3 == 2 ? 2u : 4u);
      seen[step++ / 3].insert(batch.begin(), batch.end());
      rates.push_back(learning_rate);
      return 0.5;
    };
    ASSERT_THAT(RunTrainingLoop(loop, nullptr), IsOk());
    EXPECT_EQ(step, 6u);
  }
  for (const std::set<int64_t>& epoch : seen) EXPECT_EQ(epoch.size(), 20u);
  EXPECT_THAT(rates, testing::ElementsAre(8, 8, 8, 4, 4, 4, 8, 8, 8, 4, 4, 4));
}

absl::Status LoadNothing(std::span<const int64_t>) { return absl::OkStatus(); }

TEST(TrainingLoopTest, LoadsTheNextBatchDuringAnUpdate) {
  std::string calls;
  int loads = 0;
  TrainingLoop loop{.dataset_samples = 10, .num_epochs = 2, .batch_samples = 5};
  loop.load = [&](std::span<const int64_t>) {
    calls += 'l';
    return absl::OkStatus();
  };
  loop.step = [&](double) -> absl::StatusOr<double> {
    calls += 's';
    return 0.5;
  };
  loop.wait = [&] {
    calls += 'w';
    return absl::OkStatus();
  };
  loop.add_samples = [&](int64_t samples) {
    calls += '+';
    return samples;
  };
  EXPECT_THAT(RunTrainingLoop(loop, nullptr), IsOk());
  EXPECT_EQ(calls, "lslw+slw+slw+sw+");

  // An error of loading does not leave an update under way.
  calls.clear();
  loop.load = [&](std::span<const int64_t>) -> absl::Status {
    calls += 'l';
    if (++loads == 2) return absl::DataLossError("no such file");
    return absl::OkStatus();
  };
  EXPECT_THAT(RunTrainingLoop(loop, nullptr),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(calls, "lslw");

  calls.clear();
  loop.load = LoadNothing;
  loop.wait = [&]() -> absl::Status {
    calls += 'w';
    return absl::UnavailableError("the server is lost");
  };
  EXPECT_THAT(RunTrainingLoop(loop, nullptr),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(calls, "sw");
}

TEST(TrainingLoopTest, ThereMayBeNoSamplesOrNoEpochs) {
  for (const auto& [samples, epochs] : {std::pair(0, 2), std::pair(20, 0)}) {
    TrainingLoop loop{.dataset_samples = samples, .num_epochs = epochs};
    loop.load = [](std::span<const int64_t>) {
      return absl::InternalError("a batch without samples");
    };
    loop.step = [](double) -> absl::StatusOr<double> {
      return absl::InternalError("a step without samples");
    };
    EXPECT_THAT(RunTrainingLoop(loop, nullptr), IsOk());
  }
}

TEST(TrainingLoopTest, ErrorOfAStepEndsIt) {
  int steps = 0;
  const TrainingLoop loop{.dataset_samples = 20,
                          .load = LoadNothing,
                          .step = [&](double) -> absl::StatusOr<double> {
                            if (++steps == 3) return absl::AbortedError("lost");
                            return 0.5;
                          }};
  EXPECT_THAT(RunTrainingLoop(loop, nullptr),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(steps, 3);
}

TEST(TrainingLoopTest, BatchesHaveAtLeastOneSample) {
  const TrainingLoop loop{.dataset_samples = 20,
                          .batch_samples = 0,
                          .load = LoadNothing,
                          .step = [](double) -> absl::StatusOr<double> {
                            ADD_FAILURE() << "a step without samples";
                            return 0.5;
                          }};
  EXPECT_THAT(RunTrainingLoop(loop, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("batch_samples is 0")));
}

TEST(TrainingLoopTest, ProgressShowsTheSamplesOfAllTrainers) {
  async::SimulatedClock clock;
  std::FILE* const file = std::tmpfile();
  int64_t own = 0;
  {
    telemetry::ProgressLine line(file, &clock, {});
    const TrainingLoop loop{
        .dataset_samples = 75,
        .num_epochs = 2,
        .batch_samples = 10,
        .num_trainers = 3,
        .load = LoadNothing,
        .step = [&](double) -> absl::StatusOr<double> {
          clock.AdvanceBy(absl::Seconds(1));
          return 0.5;
        },
        // With two other trainers of the same speed.
        .add_samples = [&](int64_t samples) { return 3 * (own += samples); }};
    ASSERT_THAT(RunTrainingLoop(loop, &line), IsOk());
  }
  EXPECT_EQ(own, 50);
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  // Steps of 10, 10 and 5 samples in each epoch.
  EXPECT_THAT(
      text, testing::EndsWith("epoch 2/2  step 6/6  loss 0.5000  25 samples/s  "
                              "left 0:00\n"));
}

}  // namespace
}  // namespace hawser::launch
