#include "telemetry/progress_line.h"

#include <cstdio>
#include <string>

#include "async/testing/simulated_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::telemetry {
namespace {

// A file that is read back as text.
class Output {
 public:
  Output() : file_(std::tmpfile()) {}
  ~Output() { std::fclose(file_); }
  std::FILE* file() { return file_; }
  std::string Text() {
    std::fflush(file_);
    std::rewind(file_);
    std::string text;
    for (int c; (c = std::fgetc(file_)) != EOF;) {
      text += static_cast<char>(c);
    }
    return text;
  }

 private:
  std::FILE* file_;
};

Progress AtStep(int64_t step) {
  return {.epoch = 2,
          .num_epochs = 5,
          .step = step,
          .num_steps = 100,
          .loss = 0.25,
          .samples = step * 64};
}

TEST(ProgressLineTest, PlainLinesComeOncePerInterval) {
  Output out;
  async::SimulatedClock clock;
  ProgressLine line(out.file(), &clock, {.plain_interval = absl::Seconds(2)});
  clock.AdvanceBy(absl::Seconds(1));
  line.Update(AtStep(10));  // The first is shown at once.
  clock.AdvanceBy(absl::Seconds(1));
  line.Update(AtStep(20));
  clock.AdvanceBy(absl::Seconds(1));
  line.Update(AtStep(30));
  EXPECT_EQ(out.Text(),
            "epoch 2/5  step 10/100  loss 0.2500  640 samples/s  left 0:09\n"
            "epoch 2/5  step 30/100  loss 0.2500  640 samples/s  left 0:07\n");
}

TEST(ProgressLineTest, LastStepIsAlwaysShown) {
  Output out;
  async::SimulatedClock clock;
  ProgressLine line(out.file(), &clock, {});
  line.Update(AtStep(1));
  clock.AdvanceBy(absl::Milliseconds(10));
  line.Update(AtStep(100));
  EXPECT_THAT(out.Text(), ::testing::HasSubstr("step 100/100"));
}

TEST(ProgressLineTest, LiveLineIsRedrawnInPlaceAndWiped) {
  Output out;
  async::SimulatedClock clock;
  ProgressLine line(out.file(), &clock, {.live = true});
  clock.AdvanceBy(absl::Seconds(70));
  line.Update(AtStep(1));
  clock.AdvanceBy(absl::Seconds(70));
  line.Update(AtStep(99));
  line.Finish();
  EXPECT_EQ(out.Text(),
            "\repoch 2/5  step 1/100  loss 0.2500  1 samples/s  left 1:55:30"
            "\repoch 2/5  step 99/100  loss 0.2500  45 samples/s  left 0:01 "
            "\n");
}

TEST(ProgressLineTest, FinishWithoutUpdatePrintsNothing) {
  Output out;
  async::SimulatedClock clock;
  ProgressLine line(out.file(), &clock, {.live = true});
  line.Finish();
  EXPECT_EQ(out.Text(), "");
}

}  // namespace
}  // namespace hawser::telemetry
