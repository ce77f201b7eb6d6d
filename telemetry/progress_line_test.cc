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

TEST(ProgressLineTest, LiveLineFitsTheTerminal) {
  Output out;
  async::SimulatedClock clock;
  int columns = 0;
  ProgressLine line(out.file(), &clock,
                    {.live = true, .columns = [&columns] { return columns; }});
  const auto draw = [&](int width) {
    const size_t before = out.Text().size();
    columns = width;
    clock.AdvanceBy(absl::Seconds(1));
    line.Update(AtStep(50));
    const std::string text = out.Text().substr(before);
    if (width > 0) {
      EXPECT_LE(text.size(), static_cast<size_t>(width));
    }
    // Without the spaces that overwrite the previous line.
    return text.substr(0, text.find_last_not_of(' ') + 1);
  };
  const std::string full =
      "\repoch 2/5  step 50/100  loss 0.2500  3200 samples/s  left 0:01";
  EXPECT_EQ(draw(63), full);
  EXPECT_EQ(draw(62), "\repoch 2/5  step 50/100  loss 0.2500  left 0:02");
  EXPECT_EQ(draw(47), "\repoch 2/5  step 50/100  loss 0.2500  left 0:03");
  EXPECT_EQ(draw(46), "\rstep 50/100  loss 0.2500  left 0:04");
  EXPECT_EQ(draw(36), "\rstep 50/100  loss 0.2500  left 0:05");
  EXPECT_EQ(draw(35), "\rstep 50/100  loss 0.2500");
  EXPECT_EQ(draw(24), "\rstep 50/100");
  EXPECT_EQ(draw(8), "\rstep 50");
  EXPECT_THAT(draw(0), ::testing::EndsWith("left 0:09"));
}

TEST(ProgressLineTest, DestructionEndsTheLineAndLaterUpdatesPrintNothing) {
  Output out;
  async::SimulatedClock clock;
  {
    ProgressLine line(out.file(), &clock, {.live = true});
    line.Update(AtStep(1));
  }
  EXPECT_THAT(out.Text(), ::testing::EndsWith("\n"));
  ProgressLine line(out.file(), &clock, {.live = true});
  line.Finish();
  const std::string before = out.Text();
  line.Update(AtStep(100));
  EXPECT_EQ(out.Text(), before);
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
