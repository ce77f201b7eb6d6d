#include "examples/mnist_ps/training_loop.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "data/labeled_images.h"
#include "data/synthetic_digits.h"
#include "examples/mnist_ps/options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "telemetry/progress_line.h"
#include "tensor/tensor.h"

namespace hawser::examples::mnist_ps {
namespace {

using async::IsOk;

// A model that learns nothing. Each step takes a second.
class FakeLearner : public Learner {
 public:
  explicit FakeLearner(async::SimulatedClock& clock) : clock_(clock) {}

  absl::StatusOr<double> Step(const data::Batch&) override {
    clock_.AdvanceBy(absl::Seconds(1));
    return 0.5;
  }
  absl::Status SetLearningRate(double) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<Tensor>> Parameters() override {
    return std::vector<Tensor>();
  }

 private:
  async::SimulatedClock& clock_;
};

TEST(TrainingLoopTest, ProgressShowsTheSamplesOfAllTrainers) {
  async::SimulatedClock clock;
  std::FILE* const file = std::tmpfile();
  int64_t own = 0;
  {
    telemetry::ProgressLine line(file, &clock, {});
    FakeLearner learner(clock);
    Options options;
    options.num_epochs = 2;
    options.batch_samples = 10;
    const auto count = [&own](int64_t samples) {
      own += samples;
      return 3 * own;  // With two other trainers of the same speed.
    };
    ASSERT_THAT(Train(learner, data::DrawDigits(75, 1), options, /*trainer=*/0,
                      /*num_trainers=*/3, count, &line),
                IsOk());
  }
  EXPECT_EQ(own, 50);
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  // Steps of 10, 10 and 5 samples in each epoch.
  EXPECT_THAT(text, ::testing::EndsWith(
                        "epoch 2/2  step 6/6  loss 0.5000  25 samples/s  "
                        "left 0:00\n"));
}

}  // namespace
}  // namespace hawser::examples::mnist_ps
